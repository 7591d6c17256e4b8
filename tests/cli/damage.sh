#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stores with flipped bits, cut short, and with columns that contradict each other: no command crashes,
# and verify finds every fault in what was recorded.
. "$(dirname "$0")/lib.sh"
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0     # a third of the time of hundreds of short runs; others look for leaks

opt=$checkpoints/opt
golden_tokens opt >tokens.jsonl
trace=(trace --model "$opt" --tokens tokens.jsonl --db store.db -q)
run "${trace[@]}" --vectors qkv
expect "a run of full scores with vectors" 0 "^layers finished +4" ""
run "${trace[@]}" --record summary
expect "a run of statistics" 0 "^layers finished +4" ""
run "${trace[@]}" --record sparse
expect "a run of sparse scores" 0 "^layers finished +4" ""
run persistence --db store.db -q --run 1
run verify --db store.db -q
expect "the store is sound" 0 "^complete +yes" ""

holds "sixty flipped bits: no crash, verify finds those in blobs" python "$cli/damage.py" flips store.db 0 60
holds "cut short: no crash, verify finds it" python "$cli/damage.py" cuts store.db
holds "contradictory columns: no crash, verify finds them" python "$cli/damage.py" lies store.db
finish
