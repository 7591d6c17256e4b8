#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole program with --backend cuda, on the emulated device (tests/emu): the same scores as on the CPU,
# several devices, little memory, and devices that fail. The emulation takes its faults from SH_EMU_...
. "$(dirname "$0")/lib.sh"

modules=$(dirname "$SHEARS")/tests/emu/modules
[ -e "$modules/cuda.so" ] || { echo "1..0 # SKIP there is no emulated module (no C++ compiler)"; exit 0; }
export SH_MODULE_DIR=$modules SH_EMU_STREAMS=lazy SH_EMU_CLOSE=always

opt=$checkpoints/opt
golden_tokens opt >tokens.jsonl
python -c 'for i in range(6): print([(7 * i + 3 * j * j + i * j) % 128 for j in range(24 + i)])' >six.jsonl
traced() { # store, arguments...: must go well
    local db=$1
    shift
    run trace --model "$opt" --db "out/$db" -q --json "$@"
    [ $status = 0 ] || { not_ok "trace $* into $db"; sed 's/^/# /' log/err; }
}

# Every score of two stores of the same sequences within a distance.
same_scores() { # store, store, absolute, sequences
    python - "$@" <<'P'
import sys
from scores import *
one, other, limit, sequences = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
worst = 0
for s in range(sequences):
    for layer in range(2):
        for h in range(4):
            for a, b in zip(head(one, s, layer, h), head(other, s, layer, h)):
                worst = max(worst, max(abs(x - y) for x, y in zip(a, b)))
assert worst <= limit, f"worst difference {worst}, limit {limit}"
P
}

# ---- the same results ----

traced cpu.db --tokens tokens.jsonl --backend cpu --codec f32
traced cuda.db --tokens tokens.jsonl --backend cuda --codec f32
expect "trace --backend cuda" 0 '"backend": "cuda"' ""
holds "f32: scores are the CPU's within 1e-5" same_scores out/cpu.db out/cuda.db 1e-5 2
for dtype in f16 bf16; do
    for backend in cpu cuda; do
        traced $dtype.$backend.db --tokens tokens.jsonl --backend $backend --codec f32 --dtype $dtype
    done
done
holds "f16 operands: scores are the CPU's within 1e-3" same_scores out/f16.cpu.db out/f16.cuda.db 1e-3 2
holds "bf16 operands: scores are the CPU's within 1e-2" same_scores out/bf16.cpu.db out/bf16.cuda.db 1e-2 2
for record in full sparse summary; do
    for backend in cpu cuda; do traced $record.$backend.db --tokens tokens.jsonl --backend $backend --record $record; done
    for backend in cpu cuda; do
        run persistence --db out/$record.$backend.db --json --recent 10 --alpha 2/t
        cp log/out $record.$backend.json
    done
    holds "$record: persistence is the CPU's" python - $record <<'P'
import sys
from scores import *
record = sys.argv[1]
def walk(a, b, path):
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for k in a: walk(a[k], b[k], f"{path}.{k}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b)): walk(x, y, f"{path}[{i}]")
    elif isinstance(a, float) or isinstance(b, float):
        assert abs(a - b) <= 2e-3 * max(1, abs(a)), f"{path}: {a} against {b}"
    else:
        assert a == b, f"{path}: {a} against {b}"
walk(load(f"{record}.cpu.json"), load(f"{record}.cuda.json"), "")
P
done
for backend in cpu cuda; do
    traced named.$backend.db --tokens tokens.jsonl --backend $backend --alpha split 3/t
    run persistence --db out/named.$backend.db --json --alpha split 3/t
    cp log/out named.$backend.json
done
holds "full, and thresholds: log8 scores and statistics are the CPU's" python - <<'P'
from scores import *
a, b = load("named.cpu.json"), load("named.cuda.json")
assert query("out/named.cuda.db", "SELECT count(*) FROM head_stats") == query("out/named.cpu.db", "SELECT count(*) FROM head_stats")
for x, y in zip(a["grid"], b["grid"]): assert abs(x["ratio"] - y["ratio"]) <= 2e-3, (x, y)
P
same_scores out/full.cpu.db out/named.cuda.db 0.09 2 || not_ok "full, and thresholds: the scores"
traced vectors.cpu.db --tokens tokens.jsonl --backend cpu --vectors qkv --codec f32
traced vectors.cuda.db --tokens tokens.jsonl --backend cuda --vectors qkv --codec f32
run verify --db out/vectors.cuda.db
expect "verify: a store with vectors from the device is sound" 0 "^sound +yes" ""
rm -rf out && mkdir out

# ---- several devices, little memory ----

traced one.db --tokens six.jsonl --backend cuda --codec f32
SH_EMU_DEVICES=3 traced three.db --tokens six.jsonl --backend cuda --device 0,1,2 --codec f32
holds "three devices: the same scores" same_scores out/one.db out/three.db 0 6
SH_EMU_DEVICES=2 run trace --model "$opt" --tokens six.jsonl --db out/none.db --backend cuda --device 0,5 -q
expect "a device that is not there" 3 "" "no device 5, found 2"
traced little.db --tokens six.jsonl --backend cuda --codec f32 --device-memory 62M
holds "little memory: the same scores" same_scores out/one.db out/little.db 0 6
holds "little memory: what is taken stays within what is said" python - <<'P'
from scores import *
said = load("log/out")
assert 0 < said["device_peak_bytes"] <= 62 << 20, said["device_peak_bytes"]
assert said["device_peak_bytes"] <= said["device_needs_bytes"] <= 62 << 20, said
P
cp out/one.db one.db
rm -rf out && mkdir out
refuse "too little memory says how much is needed" 1 "device" \
    trace --model "$opt" --tokens six.jsonl --db out/x.db --backend cuda --codec f32 --device-memory 58900000 -q
holds "too little memory: the hint names the option" grep -q -- "--device-memory" log/err
least=$(sed -n 's/.*--device-memory to at least \([0-9]*\).*/\1/p' log/err)
traced least.db --tokens six.jsonl --backend cuda --codec f32 --device-memory "$least"
holds "no more than is needed: the same scores, with hidden states that travel" same_scores one.db out/least.db 0 6
rm -rf out && mkdir out
SH_EMU_MEMORY=4M refuse "a device that is too small" 1 "device 0" \
    trace --model "$opt" --tokens six.jsonl --db out/x.db --backend cuda -q

# ---- no device, and devices that fail ----

for how in 0 driver; do
    SH_EMU_DEVICES=$how refuse "no device ($how): exit 3 with the runtime's sentence" 3 "backend cuda: cannot open: .*cudaError" \
        trace --model "$opt" --tokens six.jsonl --db out/x.db --backend cuda -q
done
NVIDIA_TF32_OVERRIDE=1 refuse "an environment that turns f32 into TF32 is refused" 3 \
    "cannot open: found NVIDIA_TF32_OVERRIDE=1" \
    trace --model "$opt" --tokens six.jsonl --db out/x.db --backend cuda -q
holds "and what to do is said" grep -q "^hint: unset NVIDIA_TF32_OVERRIDE, or set it to 0" log/err
NVIDIA_TF32_OVERRIDE=1 run trace --model "$opt" --tokens tokens.jsonl --db out/auto.db --json -v
expect "auto says so and goes on with the processor" 0 '"backend": "cpu"' \
    "^shears: backend cuda: cannot open: found NVIDIA_TF32_OVERRIDE=1.*; using cpu$"
NVIDIA_TF32_OVERRIDE=1 run info backends
expect "info backends says so" 0 "backend cuda: cannot open: " ""
for value in 0 ""; do
    NVIDIA_TF32_OVERRIDE=$value run trace --model "$opt" --tokens tokens.jsonl --db out/tf32$value.db --json
    expect "NVIDIA_TF32_OVERRIDE=$value is none" 0 '"backend": "cuda"' ""
done
rm -rf out && mkdir out
SH_EMU_CODE=0 refuse "a chip that the module has no code for" 3 \
    "cannot open: device 0 \(Emulated device\) has compute capability 9.0, for which this program was not built: no kernel" \
    trace --model "$opt" --tokens six.jsonl --db out/x.db --backend cuda -q
SH_EMU_CODE=0 run trace --model "$opt" --tokens six.jsonl --db out/auto.db --backend auto
expect "auto falls back from it to the CPU as well" 0 "backend +cpu" "for which this program was not built"
rm -rf out && mkdir out
SH_EMU_DEVICES=0 run trace --model "$opt" --tokens six.jsonl --db out/auto.db --backend auto -v
expect "auto falls back to the CPU and says why" 0 "backend +cpu" "cudaErrorNoDevice"
rm -rf out && mkdir out

# ---- Ctrl-C ----

python -c 'for i in range(8): print([(7 * i + 3 * j * j + i * j) % 128 for j in range(150)])' >long.jsonl
long=(trace --model "$opt" --tokens long.jsonl --backend cuda --codec f32 --device-memory 64M -q)
run "${long[@]}" --db whole.db
expect "an undisturbed run on the device" 0 "^layers finished +16" ""
for tenths in 8 5 3 2 1; do                             # until it meets a running program
    rm -f out/int.db
    timeout --foreground --preserve-status -s INT 0.$tenths "$SHEARS" "${long[@]}" --db out/int.db >log/out 2>log/err
    status=$?
    [ $status = 0 ] || break
done
expect "SIGINT on the device: status 1, and the sentence says so" 1 "" "^shears: interrupted in layer"
run verify --db out/int.db -q
expect "SIGINT on the device: the store is sound" 0 "^sound +yes" ""
run "${long[@]}" --db out/int.db
expect "SIGINT on the device: the same command goes on" 0 "^layers finished +16" ""
holds "SIGINT on the device: it equals the undisturbed run" python - <<'P'
from scores import *
same_blobs(blobs("out/int.db"), blobs("whole.db"))
P
rm -rf out && mkdir out

for fault in SH_EMU_FAIL:cudaErrorIllegalAddress SH_EMU_LOST:cudaErrorDevicesUnavailable; do
    for at in 3 12 21 30; do
        env "${fault%:*}=$at" "$SHEARS" trace --model "$opt" --tokens six.jsonl --db out/fault.db --backend cuda -q \
            >log/out 2>log/err
        status=$?
        expect "${fault%:*} at launch $at: the operation and the error are named" 1 "" \
            "^shears: .*backend cuda: device 0: .*${fault#*:}"
        if [ -e out/fault.db ]; then
            run verify --db out/fault.db
            expect "${fault%:*} at launch $at: what is in the store is sound" "$status" "^sound +yes" ""
        fi
        run trace --model "$opt" --tokens six.jsonl --db out/fault.db --backend cuda -q
        expect "${fault%:*} at launch $at: the same command finishes" 0 "^layers finished +12" ""
        rm -rf out && mkdir out
    done
done
finish
