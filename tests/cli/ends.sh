#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How commands end: quietly when nobody reads what they say any more (| head), and verify with 1 where a store is not
# whole, or not complete when that was asked.
. "$(dirname "$0")/lib.sh"
command -v sqlite3 >/dev/null || { echo "1..0 # SKIP sqlite3 is not here"; exit 0; }

model=$checkpoints/opt
golden_tokens opt >tokens.jsonl
run trace --model "$model" --tokens tokens.jsonl --db whole.db -q
expect "a store" 0 "^layers finished +4" ""

# ---- a closed pipe ----

unread() { # description, arguments...
    local what=$1
    shift
    { sleep 0.3; "$SHEARS" "$@" 2>log/err </dev/null; echo $? >log/status; } | true
    status=$(cat log/status)
    : >log/out
    expect "nobody reads: $what" 141 "" ""
}
unread "--help" --help
unread "a command's help" capacity --help
unread "a table" info policies -q
unread "JSON" persistence --db whole.db --json -q
unread "CSV" replay --db whole.db --policy h2o --budget 0.5 --csv -q
unread "ids as they come" generate --model "$model" --tokens tokens.jsonl --count 1 --max-tokens 5 -q
unread "a trace" trace --model "$model" --tokens tokens.jsonl --db other.db -q
run verify --complete --db other.db
expect "  whose store is whole" 0 "^complete +yes" ""
{ "$SHEARS" info models -q 2>log/err; echo $? >log/status; } | head -n 1 >log/out
verdict "| head -n 1: no word" "$(grep -qx '0\|141' log/status || cat log/status; stream_fault stderr log/err "")"

# ---- verify ----

run verify --db whole.db --complete
expect "a whole store" 0 "^complete +yes" ""
cp whole.db stopped.db
sqlite3 stopped.db "DELETE FROM done WHERE layer = 1 AND sequence = 1; DELETE FROM scores WHERE layer = 1 AND sequence = 1"
run verify --db stopped.db -q
expect "a run that is not finished is sound" 0 "^complete +no" ""
run verify --db stopped.db --complete -q
expect "  --complete: exit status 1" 1 "^complete +no" "stopped.db: not complete"
run verify --db stopped.db --complete --json -q
expect "  its JSON is whole" 1 '"complete": false' "stopped.db: not complete"
for i in 1 2; do run trace --model "$model" --tokens tokens.jsonl --db parts.db --shard $i/2 -q; done
run merge --db parts.db parts.db.shard-1-of-2 -q
run verify --db parts.db -q
expect "a store that waits for another shard" 0 "^complete +no" ""
run verify --db parts.db -q --complete
expect "  --complete: exit status 1" 1 "^complete +no" "parts.db: not complete"
run merge --db parts.db parts.db.shard-2-of-2 -q
run verify --db parts.db -q --complete
expect "  until it is merged" 0 "^complete +yes" ""
sqlite3 parts.db "DELETE FROM done WHERE sequence = 1; DELETE FROM scores WHERE sequence = 1"
run verify --db parts.db -q
expect "results that were there are gone: exit status 1" 1 "^shards with holes +trace 2 of 2" "parts.db: results of these shards are missing: .*trace 2 of 2"
sqlite3 stopped.db "UPDATE scores SET blob = x'00010203' WHERE id = (SELECT min(id) FROM scores)"
run verify --db stopped.db -q
expect "a damaged store: exit status 1" 1 "" "stopped.db: "
finish
