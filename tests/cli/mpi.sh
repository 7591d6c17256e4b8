#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# trace, replay and eval on four ranks, and a pipeline: the same content as one process, by hash; what is refused is
# refused once, by all. Simulate is in ranks.sh, with ranks that hang; kills.sh kills.
. "$(dirname "$0")/lib.sh"
n_sequence=24
. "$cli/ranks_lib.sh"
trace+=(--rank-timeout 60)

run "${trace[@]}" --db one.db -q
expect "one process traces" 0 "$traced" ""
ranks 4 "${trace[@]}" --db out/four.db
expect "four ranks trace, one reports" 0 "$traced" ""
holds "the same content" same one.db out/four.db
holds "one file is left" only four.db

for n in 3 4; do
    ranks $n "${trace[@]}" --pipeline --db out/line.db
    expect "a pipeline of $n ranks" 0 "$traced" ""
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
expect "one process finds them" 0 "9 of 9 rows .*store; --force" ""
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
expect "ranks without a store are refused, once" 2 "" "^shears: .*several ranks .*--db FILE"
holds "once" [ "$(grep -c '^shears:' log/err)" = 1 ]
run "${trace[@]}" --db out/bad.db --pipeline
expect "a pipeline of one is refused" 2 "" "^shears: --pipeline .*several ranks"
refused "${trace[@]}" --db out/bad.db --dtype f7
expect "a wrong option is told once" 2 "" "^shears: --dtype: .*\"f7\""
holds "once" [ "$(grep -c '^shears:' log/err)" = 1 ]
sqlite3 foreign.db "CREATE TABLE t (x)"
for command in "${trace[*]}" "${evaluate[*]}" "${trace[*]} --pipeline"; do
    began=$SECONDS
    "${limit[@]}" mpirun --oversubscribe -n 2 "$SHEARS" $command --db foreign.db --rank-timeout 60 >log/out 2>log/err </dev/null
    holds "${command%% *}: only rank 0 sees that the store is foreign, and tells the others" bash -c '
        grep -q "^shears: foreign.db: .*application id 0x" log/err && [ $1 -lt 30 ]' _ $((SECONDS - began))
done
finish
