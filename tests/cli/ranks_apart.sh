#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where ranks are not alike. Rank 0 joins for longer than anybody waits for a silent rank; one rank alone finds
# something wrong before the work; another job is at work on the same store, or a rank of one that has lost its rank 0.
# As a launcher does by default, mpirun ends a job whose ranks do not end in order.
. "$(dirname "$0")/lib.sh"
n_sequence=3
. "$cli/ranks_lib.sh"
run "${trace[@]}" --db one.db -q
expect "one process traces" 0 "$traced" ""

said() { # what mpirun itself has to say goes
    grep -E '^(shears|hint):' log/all >log/err
}
first_other() { # words for rank 0 between {}, then those for three in all
    local own=() 
    shift
    while [ "$1" != "}" ]; do own+=("$1"); shift; done
    shift
    "${limit[@]}" mpirun --oversubscribe -n 1 "${own[@]}" "$@" : -n 2 "$SHEARS" "$@" >log/out 2>log/all </dev/null
    status=$?
    said
}

alike() { first_other { "$SHEARS" } "$@"; }

# ---- rank 0 takes its time ----

if [ -n "${SH_SANITIZED-}" ]; then
    skip "rank 0 joins slowly" "a sanitizer comes before any other library"
else
    slow=(env LD_PRELOAD="$SH_FAULTS_SO" SH_FAULT=unlink-late SH_FAULT_AT=1 SH_FAULT_UNDER="$work/out/x.db.rank-0001")
    cp one.db out/x.db.rank-0001                # as a job that was killed leaves it
    first_other { "${slow[@]}" SH_FAULT_DELAY=9 "$SHEARS" } "${trace[@]}" --db out/x.db --rank-timeout 5
    expect "rank 0 joins what was left for longer than --rank-timeout" 0 "$traced" ""
    tidy "rank 0 joins what was left" out/x.db
    for how in "" --pipeline; do
        first_other { "${slow[@]}" SH_FAULT_DELAY=16 "$SHEARS" } "${trace[@]}" --db out/x.db --rank-timeout 5 $how
        expect "rank 0 joins what was found for longer than --rank-timeout ${how:-, by units}" 0 "$traced" ""
        holds "with all of it" same one.db out/x.db
        tidy "rank 0 joins what was found" out/x.db
    done
fi

# ---- one rank alone finds something wrong: far sooner than --rank-timeout, which is 600 s ----

mkdir worse && cp -r model worse/model && echo "{" >worse/model/config.json
for how in "" --pipeline; do
    first_other { env -C worse "$SHEARS" } "${trace[@]/#tokens.jsonl/$work/tokens.jsonl}" --db "$work/out/x.db" $how
    expect "a model that only rank 0 cannot read ${how:-, by units}" 1 "" "^shears: model/config.json: "
    holds "no rank is left" gone "$work/out/x.db"
    holds "no file is left" only
done
"${limit[@]}" mpirun --oversubscribe -n 2 "$SHEARS" "${trace[@]}" --db out/x.db --pipeline : \
    -n 1 env -C worse "$SHEARS" "${trace[@]/#tokens.jsonl/$work/tokens.jsonl}" --db "$work/out/x.db" --pipeline \
    >log/out 2>log/all </dev/null
status=$?
said
expect "a model that only the last of a line cannot read" 1 "" "^shears: rank 2: model/config.json: "
holds "no rank is left" gone out/x.db
rm -rf out && mkdir out

# ---- somebody else is at work ----

busy() { # store: claimed until `idle`
    rm -f claimed
    python3 - "$1" <<'P' &
import fcntl, signal, struct, sys
with open(sys.argv[1], "r+b") as f:
    fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 1 << 62, 1, 0))
    open("claimed", "w").close()
    signal.pause()
P
    holder=$!
    while [ ! -e claimed ]; do sleep 0.02; done
}
idle() { kill $holder && wait $holder 2>/dev/null; }

cp one.db out/x.db
cp one.db before.db
busy out/x.db
alike "${trace[@]}" --db out/x.db
idle
expect "a job of ranks has the store" 1 "" "^shears: out/x.db: another job "
holds "nothing is changed" same before.db out/x.db
tidy "a job of ranks has the store" out/x.db

cp one.db out/x.db.rank-0001
busy out/x.db.rank-0001
alike "${trace[@]}" --db out/x.db
idle
expect "a rank of another job has its store" 1 "" "^shears: out/x.db.rank-0001: .*another job"
holds "what it has is left alone" cmp before.db out/x.db.rank-0001
alike "${trace[@]}" --db out/x.db
expect "when it is gone, the same command goes on" 0 "$traced" ""
tidy "a rank of another job" out/x.db

run "${trace[@]}" --db out/x.db --shard 1/2 -q
expect "a shard" 0 . ""
busy out/x.db.shard-1-of-2
run "${trace[@]}" --db out/x.db --shard 1/2 -q
idle
expect "another process has the shard" 1 "" "^shears: out/x.db.shard-1-of-2: another job "
cp one.db out/x.db
busy out/x.db.shard-1-of-2
run replay --db out/x.db --policy window --budget 0.5 --shard 1/2 -q
idle
expect "another process has the shard of a replay" 1 "" "^shears: out/x.db.shard-1-of-2: another job "
rm -rf out && mkdir out

# ---- what cannot be, for all ----

alike "${trace[@]}" --db out/x.db --pipeline --shard 1/2
expect "a shard of a pipeline" 2 "" "^shears: --pipeline .*--shard"
finish
