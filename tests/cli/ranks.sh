#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank that hangs (SIGSTOP) and one that is late (SIGSTOP, then SIGCONT): others do its unit, the content is one
# process's, and no process and no file is left. Replay by ranks: layers are shared, and what a job that was killed
# had finished is found again.
. "$(dirname "$0")/lib.sh"

command -v mpirun >/dev/null || { echo "1..0 # SKIP mpirun is not here"; exit 0; }
[ -e "${SHEARS%/*}/src/ranks/mpi.so" ] || { echo "1..0 # SKIP mpi.so is not built"; exit 0; }
mpirun --version 2>&1 | grep -q "Open MPI" || { echo "1..0 # SKIP mpirun is not Open MPI's"; exit 0; }
export SH_MODULE_DIR=${SHEARS%/*}/src/ranks
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export LSAN_OPTIONS=detect_leaks=0      # of MPI's own, with a sanitizer
limit=(timeout -s KILL 300)

python "$cli/checkpoint.py" random model num_hidden_layers=4 hidden_size=128 num_attention_heads=8 ffn_dim=512 \
    vocab_size=512
python -c 'for i in range(12): print([(7 * i + 3 * j * j + i * j) % 512 for j in range(200)])' >tokens.jsonl
trace=(trace --model model --random-weights --tokens tokens.jsonl --threads 1)
run "${trace[@]}" --db one.db
expect "one process traces" 0 "^layers finished +48" ""
replay=(replay --policy h2o window scissorhands --budget 0.1,0.2,0.3,0.5 --threads 1)
cp one.db replayed.db
run "${replay[@]}" --db replayed.db -q
expect "one process replays" 0 "^ +h2o .*0\.[0-9]+" ""

hash_of() { "$SHEARS" info "$1" --hash --json | python -c 'import json, sys; print(json.load(sys.stdin)["hash"])'; }
same() { # two stores
    local a b
    a=$(hash_of "$1") b=$(hash_of "$2")
    [ -n "$a" ] && [ "$a" = "$b" ] || { echo "$1 $a, $2 $b"; false; }
}
only() { # the files that may be there
    [ "$(ls -A out)" = "$*" ] || { ls -A out; false; }
}
start() { # how many, arguments...: in the background, $launcher
    local n=$1
    shift
    "${limit[@]}" mpirun --oversubscribe --enable-recovery -n "$n" "$SHEARS" "$@" >log/out 2>log/all </dev/null &
    launcher=$!
}
ended() {
    wait $launcher
    status=$?
    grep -E '^(shears|hint):' log/all >log/err
}
pid_of() { # rank: of a process that $launcher started, while it lives
    local mpirun p
    mpirun=$(ps -o pid= --ppid $launcher | head -n 1)
    for p in ${mpirun:+$(ps -o pid= --ppid $mpirun)}; do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "$p"
    done
}
at_work() { # rank, store: $hit is its process once it has finished something, or empty when all was quicker
    hit=
    while [ ! -s "$2.rank-000$1-wal" ] && kill -0 $launcher 2>/dev/null; do sleep 0.01; done
    hit=$(pid_of "$1")
}
gone() { # store: nobody works on it
    for _ in $(seq 50); do
        ps -eo args | grep "[-]-db $1" | grep -q "^[^ ]*shears " || return 0
        sleep 0.1
    done
    ps -eo pid,stat,args | grep "[-]-db $1"
    false
}
tidy() { # store
    holds "$2: no rank is left" gone "$1"
    holds "$2: one file is left" only "${1#out/}"
    rm -rf out && mkdir out
}

start 3 "${trace[@]}" --db out/hang.db --rank-timeout 2
at_work 1 out/hang.db
[ -n "$hit" ] && kill -STOP $hit
ended
if [ -n "$hit" ]; then
    expect "a rank hangs: the others do its unit" 0 "^layers finished +48" "^shears: 1 of 3 ranks were lost; others did"
    holds "a rank hangs: the same content" same one.db out/hang.db
    tidy out/hang.db "a rank hangs"
else
    skip "a rank hangs" "the others were quicker"
fi

cp one.db out/replay.db
start 3 "${replay[@]}" --db out/replay.db --rank-timeout 1 -q
at_work 1 out/replay.db
[ -n "$hit" ] && kill -STOP $hit && sleep 1.5 && kill -CONT $hit
ended
holds "a rank of a replay is late: the others finish" [ $status = 0 ]
holds "a rank of a replay is late: the same bits" same replayed.db out/replay.db
tidy out/replay.db "a rank of a replay is late"

cp one.db out/replay.db
start 2 "${replay[@]}" --db out/replay.db --rank-timeout 1 -q
at_work 0 out/replay.db
[ -n "$hit" ] && kill -9 $hit
ended
holds "rank 0 of a replay killed: no rank is left" gone out/replay.db
[ -e out/replay.db.rank-0000 ] || echo "# it had finished before"
start 3 "${replay[@]}" --db out/replay.db -q
ended
holds "the same command finishes" [ $status = 0 ]
holds "the same command finishes: the same bits" same replayed.db out/replay.db
tidy out/replay.db "the same command finishes"
finish
