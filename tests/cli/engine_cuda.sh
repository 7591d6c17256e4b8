#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# generate and eval with --backend cuda on the emulated device (tests/emu), or on a real one (make check-gpu): the
# numbers of the CPU, the same tokens kept, what runs on the host says so, what does not fit is refused before the
# first token, and, emulated, devices that fail.
. "$(dirname "$0")/lib.sh"

find_modules
[ -n "$modules" ] || { echo "1..0 # SKIP there is no emulated module (no C++ compiler)"; exit 0; }
export SH_MODULE_DIR=$modules SH_EMU_STREAMS=lazy

python -c 'for i in range(2): print([(7 * i + 3 * j * j + i * j) % 128 for j in range(44 + i)])' >texts.jsonl
python -c 'print([(5 + 3 * j * j) % 128 for j in range(30)])' >prompt.ids
model=$checkpoints/llama_gqa

same_evals() { # limit of the difference of figures
    python - "$1" <<'P'
import json, sys
a, b, limit = *(json.load(open(f"{n}.json")) for n in ("cpu", "cuda")), float(sys.argv[1])
assert b["backend"] == "cuda" and b["device_peak_bytes"] > 0
# The device counts what was allocated, and what libraries and kernels take there.
assert b["device_used_bytes"] > 0.9 * b["device_peak_bytes"] and "device_used_bytes" not in a
for x, y in zip(a["results"], b["results"], strict=True):
    for key in "nll", "kl":
        assert abs(x[key] - y[key]) <= limit * max(1, abs(x[key])), (x["policy"], key, x[key], y[key])
    assert x["tokens"] == y["tokens"]
    assert "cache_on" not in x and "why_host" not in x and y["cache_on"] == "device" and y["why_host"] is None
P
}

for bits in 32 16 8 4; do
    for backend in cpu cuda; do
        run eval --model "$model" --tokens texts.jsonl --policy window streaming h2o:recent=3 \
            scissorhands:window=12,recent=3,drop=4 --budget 14 --kv-bits $bits --kv-group 8 --backend $backend --json
        [ $status = 0 ] || sed 's/^/# /' log/err
        [ $backend = cpu ] || said=$(cat log/err)
        cp log/out $backend.json
    done
    holds "eval, $bits bits: the CPU's figures" same_evals 2e-4
done
holds "everything was on the device" test -z "$(grep "on the host" <<<"$said")"

for policy in h2o:recent=3 scissorhands:window=12,recent=3,drop=4 streaming; do
    for backend in cpu cuda; do
        run generate --prefill-mode stream --model "$model" --tokens prompt.ids --max-tokens 20 --policy $policy --budget 14 \
            --dump-kept out/$backend.kept --backend $backend -q
        cp log/out $backend.text
    done
    holds "generate, $policy: the CPU's tokens" cmp cpu.text cuda.text
    holds "generate, $policy: the CPU's kept sets" python -c 'import json
lines = [sorted((r["sequence"], r["layer"], r["head"], r["step"], sorted(r["kept"]))
                for r in map(json.loads, open(f"out/{b}.kept"))) for b in ("cpu", "cuda")]
assert lines[0] == lines[1] and len(lines[0]) > 100'
    rm -rf out && mkdir out
    SH_EMU_STREAMS=eager run generate --prefill-mode stream --model "$model" --tokens prompt.ids --max-tokens 20 --policy $policy \
        --budget 14 --backend cuda -q
    holds "generate, $policy: the same when nobody looks" cmp cpu.text log/out
done

run generate --prefill-mode stream --model "$model" --tokens prompt.ids --max-tokens 4 --policy tova --budget 14 --backend cuda
expect "a policy that needs more says that its cache is on the host" 0 "^[0-9 ]+$" "cache is in host memory.*tova"
coded="generate --prefill-mode stream --model $model --tokens prompt.ids --max-tokens 4 --kv-bits 8 --kv-group 8 --backend cuda"
run $coded --policy streaming --budget 14 --kv-keys channel
expect "codes that share scales across slots do, in the words of --help" 0 "^[0-9 ]+$" \
    "streaming: .*--kv-keys channel"
run $coded --policy full
expect "and a cache in codes that never evicts" 0 "^[0-9 ]+$" \
    "full: .*a cache that never evicts"

# ---- rows say where their cache was ----

rows() { # policy=cache,reason…, of the JSON in log/out
    python - "$@" <<'P'
import json, sys
found = {x["policy"]: (x["cache_on"], x["why_host"]) for x in json.load(open("log/out"))["results"]}
for one in sys.argv[1:]:
    policy, wanted = one.split("=")
    on, why = wanted.split(",")
    assert found[policy][0] == (on or None) and (why in found[policy][1] if why else found[policy][1] is None), found
assert len(found) == len(sys.argv) - 1
P
}
some=(eval --model "$model" --tokens texts.jsonl --backend cuda -q --json)
run "${some[@]}" --policy full window tova --budget 14 --db rows.db
holds "eval: rows say where their cache was, and why it is on the host" rows full=device, window=device, \
    "tova=host,tova: it needs more than the device keeps"
run "${some[@]}" --policy full window h2o --budget 14 --db rows.db
holds "of what the store knew nobody can say it (the full cache is read again)" rows full=device, window=, h2o=device,
run "${some[@]}" --policy window --budget 44 --kv-bits 8 --kv-group 8
holds "a text that fills the cache is on the host, a longer one is not" rows "window=both,never evicts"
run eval --model "$model" --tokens texts.jsonl --backend cuda -q --policy window tova --budget 14 \
    --columns policy,cache_on,why_host
expect "the table has them as columns" 0 "^ +tova +host +tova: it needs more" ""

demo=$SH_TOP/demo
run repetition --model "$demo/model" --text "$demo/text/natural.txt" --length 24 --count 1 --max-tokens 2 --policy tova \
    --budget 12 --backend cuda
holds "repetition says so, too" grep -q "cache is in host memory.*tova" log/err
python -c 'import json
for i in range(2): print(json.dumps({"text": "The old house by the river was empty"}))' >lambada.jsonl
run eval --model "$demo/model" --task lambada --data lambada.jsonl --policy tova --budget 12 --backend cuda
holds "and tasks" grep -q "cache is in host memory.*tova" log/err
run eval --model "$demo/model" --task lambada --data lambada.jsonl --policy full window tova --budget 12 --backend cuda -q --json
holds "whose rows say it as well" rows full=device, window=device, "tova=host,tova: it needs more than the device keeps"

# ---- a prompt in blocks, which is how generate reads it ----

same_kept() { # the CPU's dump and the device's
    python -c 'import json
lines = [sorted((r["sequence"], r["layer"], r["head"], r["step"], sorted(r["kept"]))
                for r in map(json.loads, open(f"out/{b}.kept"))) for b in ("cpu", "cuda")]
assert lines[0] == lines[1] and len(lines[0]) > 100'
}

blocks() { # arguments of generate
    for backend in cpu cuda; do
        run generate --model "$model" --tokens prompt.ids --max-tokens 20 "$@" --dump-kept out/$backend.kept \
            --backend $backend
        cp log/out $backend.text
    done
    expect "blocks ($*): the cache is on the device" 0 "^[0-9 ]+$" "blocks took [1-9][0-9]* bytes"
    holds "blocks ($*): nothing says that it is on the host" test -z "$(grep "on the host" log/err)"
    holds "blocks ($*): the CPU's tokens" cmp cpu.text cuda.text
    holds "blocks ($*): the CPU's kept sets" same_kept
    rm -rf out && mkdir out
    SH_EMU_STREAMS=eager run generate --model "$model" --tokens prompt.ids --max-tokens 20 "$@" --backend cuda -q
    holds "blocks ($*): the same when nobody looks" cmp cpu.text log/out
}

blocks --policy h2o --budget 14
blocks --policy h2o:score=mean,recent=3 --budget 14 --prefill-block 7
blocks --policy scissorhands:window=12,recent=3,drop=4 --budget 14 --prefill-block 9 --kv-bits 8 --kv-group 8
blocks --policy scissorhands:window=12,recent=3,drop=4,counter=epochs --budget 14 --prefill 17 --prefill-block 11
blocks --policy streaming --budget 14 --prefill-block 1 --kv-bits 16
blocks --policy window --budget 14 --prefill-block 8 --kv-bits 4 --kv-group 8
blocks --policy h2o --budget 14 --prefill-mode once
blocks --policy window --budget 40 --prefill-mode once

# ---- layers that differ in their heads: query heads, KV heads, layers that do not attend; a gated recurrence ----

whole=$model
python -c 'print([(5 + 3 * j * j) % 43 for j in range(30)])' >prompt.ids
for name in openelm laguna_heads deci deci_7b recurrent_gemma_wide; do
    model=$checkpoints/modern/$name
    blocks --policy h2o --budget 14 --prefill-block 7
    blocks --policy scissorhands:window=12,recent=3,drop=4 --budget 14 --prefill-block 9 --kv-bits 16
done
for backend in cpu cuda; do
    run eval --model "$checkpoints/modern/openelm" --tokens prompt.ids --policy full window h2o --budget 14 --stream --json \
        --backend $backend -q
    cp log/out $backend.json
done
holds "layers that differ in their heads: the CPU's figures, on the device" same_evals 1e-5
run eval --model "$checkpoints/modern/gemma4_kv_heads" --tokens prompt.ids --policy h2o --budget 14 --stream --json \
    --backend cuda -q
holds "  widths that differ keep the cache on the host" rows "h2o=host,its layers differ in the width of their heads"
model=$whole
python -c 'print([(5 + 3 * j * j) % 128 for j in range(30)])' >prompt.ids

run generate --model "$model" --tokens prompt.ids --max-tokens 4 --policy tova --budget 14 --backend cuda
expect "blocks: what is on the host for its policy says so" 0 "^[0-9 ]+$" "cache is in host memory.*tova: it needs more"

# ---- texts side by side ----

python -c 'for i in range(6): print([(7 * i + 3 * j * j + i * j) % 128 for j in range(40)])' >six.jsonl
six=(eval --model "$model" --tokens six.jsonl --policy window h2o:recent=3 --budget 14 --json -q)
peak() { python -c 'import json, sys; print(json.load(open(sys.argv[1]))["device_peak_bytes"])' "$1"; }
run "${six[@]}" --backend cpu
cp log/out cpu.json
for batch in 1 4 ""; do
    run "${six[@]}" --backend cuda ${batch:+--batch $batch}
    cp log/out cuda.json
    holds "${batch:-as many as fit} texts side by side: the CPU's figures" same_evals 2e-4
    cp cuda.json "side-$batch.json"
done
holds "more texts take more of the device" test "$(peak side-1.json)" -lt "$(peak side-4.json)"
holds "all go side by side when they fit" test "$(peak side-4.json)" -lt "$(peak side-.json)"
memory=$(($(peak side-4.json) + 4096))
refuse "a batch that does not fit is refused, with how many texts would" 1 "--batch 6: .*at most [1-5] fit" \
    "${six[@]}" --backend cuda --batch 6 --device-memory $memory
run "${six[@]}" --backend cuda --device-memory $memory
cp log/out cuda.json
holds "without --batch as many are read as fit" same_evals 2e-4
refuse "where not one text fits, what is missing is named" 1 "six.jsonl:0: .*, .*bytes" \
    "${six[@]}" --backend cuda --device-memory $(($(peak side-1.json) - 30000))
refuse "dumps are of one text after another" 2 "--batch .*--dump-kept" \
    "${six[@]}" --policy window --backend cpu --batch 2 --dump-kept out/k.jsonl

# ---- many texts being written ----

python -c 'for n in 5, 19, 11, 2, 30, 16: print([(5 * n + 3 * j * j) % 128 for j in range(n)])' >many.jsonl
many=(generate --model "$model" --tokens many.jsonl --count 9 --max-tokens 12 --json -q)
same_many() { # two answers: the same texts
    python - "$@" <<'P'
import json, sys
a, b = (json.load(open(n))["texts"] for n in sys.argv[1:])
assert len(a) == len(b) == 6
for x, y in zip(a, b):
    assert x["ids"] == y["ids"] and x["stopped"] == y["stopped"], (x["source"], x["ids"], y["ids"])
P
}
write_many() { # arguments of generate
    run "${many[@]}" "$@" --backend cpu --dump-kept out/cpu.kept
    cp log/out cpu.json
    for batch in 1 4 ""; do
        run "${many[@]}" "$@" --backend cuda --dump-kept out/cuda.kept ${batch:+--batch $batch}
        cp log/out "many-$batch.json"
        holds "many texts ($*), ${batch:-as many as fit} side by side: the CPU's tokens" same_many cpu.json "many-$batch.json"
        holds "many texts ($*), ${batch:-as many as fit} side by side: the CPU's kept sets" same_kept
    done
    SH_EMU_STREAMS=eager run "${many[@]}" "$@" --backend cuda --batch 4
    cp log/out many.json
    holds "many texts ($*): the same when nobody looks" same_many cpu.json many.json
    rm -rf out && mkdir out
}
write_many --policy h2o --budget 14 --prefill-block 7
write_many --policy scissorhands:window=12,recent=3,drop=4 --budget 14 --prefill-mode stream
write_many --policy window --budget 14 --kv-bits 8 --kv-group 8
write_many
run "${many[@]}" --policy h2o --budget 14 --backend cuda --batch 3
cp log/out many-3.json
memory=$(($(peak many-3.json) + 4096))
refuse "a batch that does not fit on the device is refused, with how many texts would" 1 \
    "at most [1-5] sequences? with this budget" "${many[@]}" --policy h2o --budget 14 --backend cuda --batch 6 --device-memory $memory
run "${many[@]}" --policy h2o --budget 14 --backend cuda --device-memory $memory
cp log/out many.json
holds "without --batch as many are written as fit" same_many many-3.json many.json
holds "which are not all" python -c 'import json; assert 1 <= json.load(open("many.json"))["batch"] < 6'

# A place that is used again: the most that a head had in use is some text's.
echo "[$(seq -s, 5 24)]
[5]" >uneven
for batch in 1 2; do
    run generate --model "$model" --tokens uneven --count 2 --batch $batch --max-tokens 3 --backend cuda --json -q
    holds "tokens a head at most, $batch side by side" python -c 'import json
r = json.load(open("log/out"))
assert r["peak_tokens"] == 22 and r["texts"][0]["prompt_tokens"] == 20, r["peak_tokens"]'
done

# Rows that somebody looks at take memory, too: it is counted before there is a cache, so that as many go as fit.
python -c 'for i in range(6): print([(5 * i + 3 * j * j) % 128 for j in range(30)])' >alike.jsonl
alike=(generate --model "$model" --tokens alike.jsonl --count 9 --max-tokens 40 --policy window --budget 60 --backend cuda --json -q)
run "${alike[@]}" --batch 1
cp log/out alone.json
lacks() { # what a refusal says to be lacking
    sed -n 's/.* need \([0-9]*\) bytes, but the device has \([0-9]*\) left.*/\1 - \2/p' log/err
}
run "${alike[@]}" --device-memory "$(peak alone.json)"
plain=$(($(lacks)))
run "${alike[@]}" --device-memory "$(peak alone.json)" --repetition
looked=$(($(lacks)))
holds "rows that are looked at are counted" test "$looked" -gt $((plain + 1024))
for more in 0 8 16 24 32 40 48; do
    run "${alike[@]}" --repetition --device-memory $(($(peak alone.json) + looked + 1024 * more))
    [ $status = 0 ] || cat log/err
    python -c 'import json; print(json.load(open("log/out"))["batch"], file=open("batches", "a"))'
done >refused 2>&1
holds "as many as fit are written when rows are looked at" test ! -s refused
holds "one, and more with more memory" python -c 'n = [*map(int, open("batches"))]; assert n[0] == 1 < n[-1] <= 6 and n == sorted(n), n'

# ---- what does not fit, and devices that fail ----

python -c 'print([(5 + 3 * j * j) % 128 for j in range(60)])' >sixty.ids
run generate --prefill-mode stream --model "$checkpoints/opt" --tokens sixty.ids --max-tokens 2 --policy window --budget 60 --json \
    --backend cuda -q
cp log/out whole.json
python -c 'import json
o = json.load(open("whole.json"))
print(o["device_peak_bytes"] - o["kv_bytes"] // 2)' >little
refuse "a cache that does not fit is refused before the first token, with what would" 1 \
    "KV cache of 1 sequence and one step need [0-9]+ bytes, but the device has [0-9]+ left" \
    generate --prefill-mode stream --model "$checkpoints/opt" --tokens sixty.ids --max-tokens 2 --policy window --budget 60 \
    --backend cuda -q --device-memory "$(cat little)"
holds "what is lacking can be read" python -c 'import re
takes, left = map(int, re.search("need ([0-9]+) bytes, but the device has ([0-9]+) left", open("log/err").read()).groups())
print(int(open("little").read()) + takes - left - 8000, file=open("nearly", "w"))'
nearly=(generate --prefill-mode stream --model "$checkpoints/opt" --tokens sixty.ids --max-tokens 2 --policy window --backend cuda -q
    --device-memory "$(cat nearly)")
run "${nearly[@]}" --budget 60
holds "the hint names a budget" grep -Eq "budget of [0-9]+ tokens" log/err
run "${nearly[@]}" --budget "$(sed -n 's/.*budget of \([0-9]*\) tokens.*/\1/p' log/err)"
expect "that budget fits" 0 "^[0-9 ]+$" ""

refuse "what blocks take counts" 1 "KV cache of 1 sequence and one step need [0-9]+ bytes, but the device has [0-9]+ left" \
    generate --model "$checkpoints/opt" --tokens sixty.ids --max-tokens 2 --policy window --budget 60 --backend cuda -q \
    --device-memory "$(cat nearly)"
holds "what is lacking can be read there, too" python -c 'import re
takes, left = map(int, re.search("need ([0-9]+) bytes, but the device has ([0-9]+) left", open("log/err").read()).groups())
print(int(open("nearly").read()) + takes - left - 8000, file=open("blocks", "w"))'
nearly=(generate --model "$checkpoints/opt" --tokens sixty.ids --max-tokens 2 --policy window --backend cuda -q
    --device-memory "$(cat blocks)")
run "${nearly[@]}" --budget 60
run "${nearly[@]}" --budget "$(sed -n 's/.*budget of \([0-9]*\) tokens.*/\1/p' log/err)"
expect "the budget of the hint fits with blocks" 0 "^[0-9 ]+$" ""

[ -n "$emulated" ] || { skip "devices that fail" "this one is real"; finish; exit; }

# ---- steps that cannot be captured as graphs ----

eager=(generate --prefill-mode stream --model "$model" --tokens prompt.ids --max-tokens 20 --policy h2o --budget 14)
run "${eager[@]}" --backend cpu -q
cp log/out cpu.text
for part in begin kernel end make; do
    SH_EMU_LEAKS=1 SH_EMU_GRAPH=$part run "${eager[@]}" --backend cuda
    cp log/out cuda.text
    expect "capturing fails ($part): the run goes on, and says it once" 0 "^[0-9 ]+$" \
        "^shears: .*graphs.*cudaError"
    holds "capturing fails ($part): once" test "$(grep -c "do not run as CUDA graphs" log/err)" = 1
    holds "capturing fails ($part): the CPU's tokens" cmp cpu.text cuda.text
    SH_EMU_LEAKS=1 SH_EMU_GRAPH=$part run "${eager[@]}" --backend cuda -q --json --timing
    expect "capturing fails ($part): with timers, -q" 0 '"stage": "eviction"' ""
done
# Texts end one after another, so that there are steps of 6 rows, then of fewer: the first capture goes well.
SH_EMU_LEAKS=1 run "${many[@]}" --policy window --budget 14 --backend cuda
cp log/out many.json
for part in kernel:2 end:2 make:3; do
    SH_EMU_LEAKS=1 SH_EMU_GRAPH=$part run "${many[@]}" --policy window --budget 14 --backend cuda
    cp log/out many-late.json
    expect "capturing fails late ($part)" 0 '"texts"' ""
    holds "capturing fails late ($part): the same texts" same_many many.json many-late.json
done
for fault in SH_EMU_FAIL:cudaErrorIllegalAddress SH_EMU_LOST:cudaErrorDevicesUnavailable; do
    for at in 2 40 200 450; do
        export "${fault%:*}=$at"
        refuse "${fault%:*} at launch $at: the device and the error are named" 1 \
            "backend cuda: device 0: .*${fault#*:}" generate --prefill-mode stream --model "$model" --tokens prompt.ids --max-tokens 20 \
            --policy h2o --budget 14 --backend cuda -q --json
        unset "${fault%:*}"
    done
done
for at in 3 25 45; do
    SH_EMU_FAIL=$at refuse "in a block, at launch $at: the device and the error are named" 1 \
        "backend cuda: device 0: .*cudaErrorIllegalAddress" generate --model "$model" --tokens prompt.ids --max-tokens 2 \
        --policy h2o --budget 14 --backend cuda -q
done
SH_EMU_LEAKS=1 run generate --model "$model" --tokens prompt.ids --max-tokens 6 --policy h2o --budget 14 --backend cuda -q
expect "nothing of a block is left on the device" 0 "^[0-9 ]+$" ""
SH_EMU_LEAKS=1 run generate --prefill-mode stream --model "$model" --tokens prompt.ids --max-tokens 6 --policy h2o --budget 14 --backend cuda -q
expect "nothing is left on the device" 0 "^[0-9 ]+$" ""
finish
