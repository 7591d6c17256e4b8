#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stores from anywhere: values of other kinds, tables without rules, schemas that would run something. No command
# crashes, hangs or takes what memory there is, and each names the file that it refuses.
. "$(dirname "$0")/lib.sh"
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0     # a third of the time of hundreds of short runs; others look for leaks

opt=$checkpoints/opt
golden_tokens opt | head -n 2 >tokens.jsonl
trace=(trace --model "$opt" --tokens tokens.jsonl --db store.db -q)
run "${trace[@]}" --vectors qkv --shard 1/1             # with its note, and what it holds
mv store.db.shard-1-of-1 store.db
run "${trace[@]}" --record summary
run "${trace[@]}" --record sparse
expect "three runs" 0 "^layers finished +4" ""
run persistence --db store.db -q --run 1
run replay --db store.db -q --run 1 --policy window h2o:recent=4 --budget 8 16
run eval --db store.db -q --model "$opt" --tokens tokens.jsonl --policy h2o:recent=4 --budget 8
run drift --db store.db -q --run 1 --model "$opt" --policy h2o:recent=4 --budget 8
run plan --db store.db -q --run 1 --policy h2o:recent=4 --target-recall 0.8 -o plan.json
expect "results of several commands" 0 "^target +kept_mass" ""
run verify --db store.db -q
expect "the store is sound" 0 "^complete +yes" ""

holds "schemas that would run something" python "$cli/hostile.py" schemas store.db "$opt" tokens.jsonl
holds "values of other kinds" python "$cli/hostile.py" values store.db "$opt" tokens.jsonl 0 "${SH_HOSTILE:-12}"
finish
