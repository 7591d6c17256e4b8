#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The progress of several ranks is one display, rank 0's: what all have done of the whole, and of a pipeline what is
# through its last rank. What it says is looked at while a rank stands still, so that it is said, however long it takes;
# not how far the others have come.
. "$(dirname "$0")/lib.sh"
n_sequence=8
. "$cli/ranks_lib.sh"
limit=(timeout -s KILL 300)

python -c 'import json
for i in range(60): print([(7 * i + 3 * j * j) % 512 for j in range(200)])' >short.jsonl
lines() { grep -E '^[a-z]+ +[0-9]+ %' log/all; }
stop_at_work() { # rank, store: $hit is its process, which stands still from now on, or empty when it was through
    hit=
    while [ ! -e "$2.rank-000$1" ] && kill -0 $launcher 2>/dev/null; do sleep 0.01; done
    hit=$(pid_of "$1")
    [ -z "$hit" ] || kill -STOP $hit || hit=
}
until_said() { # expression: a line of progress says so, or nobody works any more
    local i
    for i in $(seq 1800); do
        { lines | grep -Eqe "$1" || ! kill -0 $launcher 2>/dev/null; } && break
        sleep 0.1
    done
}
one_display() { # what, expression that every line is
    [ -n "$(lines)" ] || { echo "no progress is shown"; false; } && ! lines | grep -vEe "^$1 +[0-9]+ %  $2"
}
never_back() { lines | grep -oE '[0-9]+ %' | sort -nc; }

# A unit that a rank stands still with is not done: there is always something to show.
watch() { # what, its name in a line, arguments...
    start 3 "${@:3}" --db out/x.db --rank-timeout 600
    stop_at_work 2 out/x.db
    [ -z "$hit" ] || until_said ' [01] of 3 ranks'
    [ -z "$hit" ] || kill -CONT $hit
    ended
    expect "$1 by three ranks" 0 . ""
    if [ -z "$hit" ]; then
        skip "$1: one display" "the others were quicker"
    else
        holds "$1: one display, of all" one_display "$2" \
            '[0-9]+ of 100 percent  .*/s  .* left  [0-3] of 3 ranks *$'
        holds "$1: it never goes back" never_back
    fi
    rm -rf out && mkdir out
}
watch trace tracing "${trace[@]}"
watch simulate simulating simulate --model opt-125m --gpu A100-SXM-80GB --rate 20,40,60,80 --budget 0.2 --requests 2000 \
    --prompt 300 --output 200

start 3 "${trace[@]}" -q --db out/x.db
ended
expect "quiet ranks" 0 "$traced" ""
holds "show none" bash -c '! grep -q percent log/all'
rm -rf out && mkdir out

# ---- a pipeline ----

line=(trace --model model --random-weights --tokens short.jsonl --threads 1 --pipeline --rank-timeout 600)
done_of() { # rank: layers that it has finished
    local n
    n=$(sqlite3 -readonly "out/x.db.rank-000$1" "SELECT count(*) FROM done" 2>/dev/null)
    echo "${n:-0}"
}
until_done() { # rank, how many
    while [ "$(done_of "$1")" -lt "$2" ] && kill -0 $launcher 2>/dev/null; do sleep 0.05; done
}

# The last rank cannot begin: who has this lock is making its store. The others do what they can.
mkfifo go
python3 - out/x.db.rank-0002.shears-new <<'P' &
import fcntl, sys
f = open(sys.argv[1], "w")
fcntl.flock(f, fcntl.LOCK_EX)
open("held", "w").close()
open("go").read()
P
holder=$!
while [ ! -e held ]; do sleep 0.02; done
start 3 "${line[@]}" --db out/x.db
until_done 0 1
until_said 'through 3 ranks'
lines >stood
echo >go
wait $holder
ended
expect "a pipeline whose last rank begins late" 0 "^layers finished +240" ""
holds "one display, of what is through" one_display tracing '[0-9]+ of 100 percent  .*/s  .* left  through 3 ranks *$'
holds "that is nothing, as long as the last rank has not begun" \
    bash -c '[ -s stood ] && ! grep -vE "^tracing +0 %  0 of 100 percent " stood'
tidy "a pipeline whose last rank begins late" out/x.db

start 3 "${line[@]}" --db out/x.db
until_done 2 25                                         # what came before has been told of
hit=$(pid_of 2)
if [ -n "$hit" ] && kill -STOP $hit; then
    until_said '^tracing +[1-9]'
    lines >stood
    kill -CONT $hit
fi
ended
expect "a pipeline whose last rank stands still" 0 "^layers finished +240" ""
if [ -n "$hit" ]; then
    holds "what was through is shown" grep -qE '^tracing +[1-9][0-9]* %' stood
    holds "and never goes back" never_back
else
    skip "what was through is shown" "it was through before"
fi
tidy "a pipeline whose last rank stands still" out/x.db
finish
