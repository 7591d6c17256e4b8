#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# trace, replay and eval on four ranks: the same content as one process, by hash; a rank that is killed while
# it works costs nothing but time; rank 0 killed: the same command finishes. SH_TEST_KILLS=10 kills at ten
# moments (default: 2).
. "$(dirname "$0")/lib.sh"

command -v mpirun >/dev/null || { echo "1..0 # SKIP mpirun is not here"; exit 0; }
[ -e "${SHEARS%/*}/src/ranks/mpi.so" ] || { echo "1..0 # SKIP mpi.so is not built"; exit 0; }
mpirun --version 2>&1 | grep -q "Open MPI" || { echo "1..0 # SKIP mpirun is not Open MPI's"; exit 0; }
export SH_MODULE_DIR=${SHEARS%/*}/src/ranks
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export LSAN_OPTIONS=detect_leaks=0      # of MPI's own, with a sanitizer
limit=(timeout -s KILL 120)

python "$cli/checkpoint.py" random model num_hidden_layers=4 hidden_size=128 num_attention_heads=8 ffn_dim=512 \
    vocab_size=512
python -c 'for i in range(24): print([(7 * i + 3 * j * j + i * j) % 512 for j in range(240)])' >tokens.jsonl
trace=(trace --model model --random-weights --tokens tokens.jsonl --threads 1 --rank-timeout 4)

ranks() { # how many, arguments...: like run, under mpirun with ranks that may be lost
    local n=$1
    shift
    "${limit[@]}" mpirun --oversubscribe --enable-recovery -n "$n" "$SHEARS" "$@" >log/out 2>log/all </dev/null
    status=$?
    grep -E '^(shears|hint):' log/all >log/err      # mpirun has something to say about every rank that dies
}
hash_of() { "$SHEARS" info "$1" --hash --json | python -c 'import json, sys; print(json.load(sys.stdin)["hash"])'; }
same() { # two stores
    local a b
    a=$(hash_of "$1") b=$(hash_of "$2")
    [ -n "$a" ] && [ "$a" = "$b" ] || { echo "$1 $a, $2 $b"; false; }
}
only() { # the files that may be there
    [ "$(ls -A out)" = "$*" ] || { ls -A out; false; }
}

run "${trace[@]}" --db one.db
expect "one process traces" 0 "^layers finished +96" ""
ranks 4 "${trace[@]}" --db out/four.db
expect "four ranks trace, one reports" 0 "^layers finished +96" ""
holds "the same content" same one.db out/four.db
holds "one file is left" only four.db

for n in 3 4; do
    ranks $n "${trace[@]}" --pipeline --db out/line.db
    expect "a pipeline of $n ranks" 0 "^layers finished +96" ""
    holds "a pipeline of $n ranks: the same bits" same one.db out/line.db
    holds "a pipeline of $n ranks: one file is left" only $'four.db\nline.db'
    rm out/line.db
done

replay=(replay --policy window h2o streaming --budget 0.1,0.2,0.5 -q)
cp one.db replayed.db
run "${replay[@]}" --db replayed.db
ranks 4 "${replay[@]}" --db out/four.db
expect "four ranks replay" 0 "^ +h2o .*0\.[0-9]+" ""
holds "the same results" same replayed.db out/four.db
run "${replay[@]}" --db out/four.db
expect "one process finds them" 0 "9 of 9 rows are from the store" ""
holds "one file is left" only four.db

golden_tokens opt >golden.jsonl
evaluate=(eval --model "$checkpoints/opt" --tokens golden.jsonl --count 2 --policy window h2o --budget 0.1,0.2,0.5 -q)
run "${evaluate[@]}" --db evaluated.db
ranks 4 "${evaluate[@]}" --db out/eval.db
expect "four ranks evaluate" 0 "^ +h2o .*0\.[0-9]+" ""
holds "the same figures" same evaluated.db out/eval.db
refused() { # arguments...: without --enable-recovery, which would make mpirun's own status 0
    "${limit[@]}" mpirun --oversubscribe -n 2 "$SHEARS" "$@" >log/out 2>log/all </dev/null
    status=$?
    grep -E '^(shears|hint):' log/all >log/err
    grep -vE '^-|^$|^Primary|a non-zero' log/out >log/kept
    mv log/kept log/out
}
refused "${evaluate[@]}"
expect "ranks without a store are refused, once" 2 "" "^shears: several ranks need --db FILE"
holds "once" [ "$(grep -c '^shears:' log/err)" = 1 ]
run "${trace[@]}" --db out/bad.db --pipeline
expect "a pipeline of one is refused" 2 "" "^shears: --pipeline needs several ranks"
refused "${trace[@]}" --db out/bad.db --dtype f7
expect "a wrong option is told once" 2 "" "^shears: --dtype: \"f7\""
holds "once" [ "$(grep -c '^shears:' log/err)" = 1 ]
rm -rf out && mkdir out

# Kill a rank so many milliseconds after it began its store.
victim() { # pid of mpirun, which
    local p
    for p in $(ps -o pid= --ppid "$1"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$2" && echo "$p"
    done
}
killed_run() { # which, ms, store: $hit_now is its pid, or empty
    "${limit[@]}" mpirun --oversubscribe --enable-recovery -n 4 "$SHEARS" "${trace[@]}" -q --db "$3" >log/out 2>log/all &
    local launcher=$! child
    while [ ! -e "$3.rank-000$1" ] && kill -0 $launcher 2>/dev/null; do sleep 0.01; done
    sleep "0.$2"
    hit_now=
    child=$(ps -o pid= --ppid $launcher | head -n 1)
    [ -n "$child" ] && hit_now=$(victim $child "$1")
    [ -n "$hit_now" ] && kill -9 "$hit_now" && hit=$((hit + 1))
    wait $launcher
    status=$?
    grep -E '^(shears|hint):' log/all >log/err
}
hit=0 n=0
for moment in "1 020" "3 300" "2 000" "1 150" "2 400" "3 080" "1 600" "2 050" "3 200" "1 500"; do
    [ $((n += 1)) -le "${SH_TEST_KILLS:-2}" ] || break
    set -- $moment
    killed_run "$1" "$2" out/store.db
    holds "rank $1 killed after $2 ms: the others finish" [ $status = 0 ]
    [ -z "$hit_now" ] || grep -q "ranks were lost" log/err || echo "# it had done all it was given"
    holds "rank $1, $2 ms: the same content" same one.db out/store.db
    holds "rank $1, $2 ms: one file is left" only store.db
    rm -rf out && mkdir out
done
echo "# $hit of $((n > ${SH_TEST_KILLS:-2} ? n - 1 : n)) were hit while they lived"
holds "a rank was hit" [ $hit -ge 1 ]

killed_run 0 100 out/store.db
if [ -n "$hit_now" ]; then
    holds "rank 0 killed: no rank is left" bash -c '! ps -eo args | grep "[-]-db out/store.db" | grep -q "^[^ ]*shears "'
    ranks 3 "${trace[@]}" -q --db out/store.db
    expect "rank 0 killed: the same command finishes" 0 "^layers finished +96" ""
    holds "rank 0 killed: the same content" same one.db out/store.db
    holds "rank 0 killed: one file is left" only store.db
else
    skip "rank 0 killed" "it was faster"
fi
finish
