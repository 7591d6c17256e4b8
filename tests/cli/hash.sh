#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# info --hash over what every command keeps as results: two stores that were made alike have the same, and it sees a
# change of each figure but those that a clock measured.
. "$(dirname "$0")/lib.sh"

records=$SH_GOLDEN/tasks
mkdir model && cp "$records"/model/* "$tokenizer"/{vocab.json,merges.txt,special_tokens_map.json,tokenizer_config.json} model
golden_tokens opt >tokens.jsonl
python -c 'for i in range(26): print([2 + (7 * i + 3 * j * j + i * j) % 60 for j in range(24)])' >many.jsonl
texts=(--model "$checkpoints/opt" --tokens tokens.jsonl)
policy=(--policy h2o --budget 12)
for i in 1 2; do
    db=(--db $i.db -q --threads $i)
    run trace "${texts[@]}" "${db[@]}" --vectors qkv
    run persistence "${db[@]}"
    run replay "${db[@]}" "${policy[@]}"
    run theory "${db[@]}" --replicas 3
    run drift --model "$checkpoints/opt" "${db[@]}" "${policy[@]}" --every 8
    run eval "${texts[@]}" "${db[@]}" "${policy[@]}"
    run eval --model model --task piqa --data "$records/piqa.jsonl" "${db[@]}" "${policy[@]}"
    run repetition "${texts[@]}" "${db[@]}" "${policy[@]}" --prompt-tokens 8 --max-tokens 24
    run simulate --model opt-125m --gpu A100-SXM-80GB --rate 20 --requests 60 --prompt 300 --output 30 --slo-ttft 0.05 \
        --slo-tpot 0.05 --max-rate "${db[@]}"
    run plan --model "$checkpoints/opt" --tokens many.jsonl --length 24 --policy h2o --allocator loss \
        --target-ppl-increase 50% --sequences 12 "${db[@]}"
done
holds "made twice, by one thread and by two: the same hash" same 1.db 2.db

# The commands that the table of results has are those that this test has run.
sed -n '/sh_result_kinds\[\]/,$s/^ *{"\([a-z]*\)".*/\1/p' "${SH_TOP:?the source tree}/src/app/store/result_tables.c" |
    sort >known
sqlite3 1.db "SELECT DISTINCT command FROM result ORDER BY command" >kept
holds "every command that keeps results has kept some here" diff known kept

cat >change.py <<'P'
import json, os, sqlite3, subprocess, sys
clock = {("eval", "tokens_per_s"), ("task", "tokens_per_s")}
db = sqlite3.connect("1.db", isolation_level=None)
db.execute("DELETE FROM done")                          # no blobs: they take time
def seen():
    said = subprocess.run([os.environ["SHEARS"], "info", "1.db", "--hash", "--json"], capture_output=True, check=True)
    return json.loads(said.stdout)["hash"]
before, tried = seen(), {}
for command, metric, row, value in db.execute("SELECT command, metric, min(id), value FROM result"
                                              " GROUP BY command, metric").fetchall():
    if (command, metric.split("@")[0]) in tried:        # one of its parts is enough
        continue
    db.execute("UPDATE result SET value = ? WHERE id = ?", ((value or 0) + 1, row))
    tried[command, metric.split("@")[0]] = seen() != before
    db.execute("UPDATE result SET value = ? WHERE id = ?", (value, row))
wrong = [(of, is_seen) for of, is_seen in tried.items() if is_seen == (of in clock)]
assert clock <= tried.keys() and ("simulate", "throughput_tokens_per_s") in tried and len(tried) > 80, sorted(tried)
assert not wrong, wrong
P
holds "the hash sees a change of each figure but those of a clock" python change.py
finish
