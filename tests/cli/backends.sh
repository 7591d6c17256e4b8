#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the command line says about backends and devices, with the modules of tests/fake in $SH_FAKE: which
# are found and where, why one cannot be used, what auto makes of that, what --device and its like ask for.
. "$(dirname "$0")/lib.sh"
: "${SH_FAKE:?tests/fake of the build folder}"

opt=$checkpoints/opt
echo '[1, 2, 3, 4, 5]' >tokens.jsonl
mkdir none
unset FAKE_DEVICES FAKE_BUSY

# trace with the modules of a folder.
traced() { # folder, arguments...
    local SH_MODULE_DIR=$1
    export SH_MODULE_DIR
    shift
    rm -f out/*
    run trace --model "$opt" --db out/x.db --tokens tokens.jsonl --json "$@"
}

# It ends with one sentence and leaves nothing.
refused() { # description, status, sentence, folder, arguments...
    local what=$1 wanted=$2 sentence=$3
    shift 3
    traced "$@"
    verdict "$what" "$(
        faults "$wanted" "" "^shears: $sentence"
        left=$(find out -mindepth 1)
        [ -z "$left" ] || echo "# left behind: $left"
    )"
}

# It runs on the processor and says this on stderr.
on_cpu() { # description, stderr, folder, arguments...
    local what=$1 said=$2
    shift 2
    traced "$@"
    expect "$what" 0 '"backend": "cpu"' "$said"
}

# ---- a backend that is named is used or the command fails ----

refused "cuda, not built: status 3, and where it was looked for" 3 \
    "backend cuda: not built: .*cuda\.so in $work/none" \
    "$work/none" --backend cuda
holds "cuda, not built: how to get it" grep -q '^hint: ./configure --with-cuda' log/err
refused "cuda, cannot load: the linker's own words" 3 \
    "backend cuda: cannot load: $SH_FAKE/needs/cuda\.so: undefined symbol: fake_function_that_nobody_has$" \
    "$SH_FAKE/needs" --backend cuda
refused "cuda, another version's: both numbers" 3 \
    "backend cuda: cannot load: .* version is [0-9]+, .* is [0-9]+$" \
    "$SH_FAKE/stale" --backend cuda
refused "cuda, another library" 3 "backend cuda: cannot load: .*undefined symbol: sh_backend_module$" \
    "$SH_FAKE/hidden" --backend cuda
FAKE_DEVICES=0 refused "cuda, no chip: the runtime's own words" 3 \
    "backend cuda: cannot open: no CUDA-capable device is detected$" "$SH_FAKE/good" --backend cuda
refused "cuda, no such device" 3 "backend cuda: cannot open: no device 4, found 1 device" \
    "$SH_FAKE/good" --backend cuda --device 4
refused "cpu: has one device" 2 "backend cpu: .*device 1" "$SH_FAKE/trap" --backend cpu --device 1
on_cpu "cpu: nothing is loaded" "" "$SH_FAKE/trap" --backend cpu -q
traced "$SH_FAKE/trap" --backend cuda -q
expect "the trap of the last test works" 97 "" ""

# ---- auto ----

FAKE_DEVICES=0 on_cpu "auto, no chip: why, and what instead" \
    "^shears: backend cuda: cannot open: no CUDA-capable device is detected; using cpu$" "$SH_FAKE/good" -v
holds "auto, no chip: one line of that" [ "$(grep -c 'using cpu' log/err)" = 1 ]
FAKE_DEVICES=0 on_cpu "auto, no chip: --quiet" "" "$SH_FAKE/good" -q
FAKE_DEVICES=0 on_cpu "auto, no chip" "" "$SH_FAKE/good"
holds "auto, no chip: no word of it without -v" test "$(grep -c 'backend' log/err)" = 0
on_cpu "auto, cannot load" "^shears: backend cuda: cannot load: .*; using cpu$" "$SH_FAKE/stale"
on_cpu "auto, not built: --quiet" "" none -q
on_cpu "auto, not built: --verbose tells" "^shears: backend cuda: not built: .*; using cpu$" none -v
on_cpu "auto, not built" "" none
holds "auto, not built: no word of it" test "$(grep -c 'backend' log/err)" = 0
FAKE_DEVICES=0 refused "auto, no chip: the second device cannot be the processor's" 3 \
    "backend cuda: cannot open: no CUDA-capable device is detected$" "$SH_FAKE/good" --device 0,1

# ---- what is asked of the devices ----

# The fake device has no memory; it tells what it was opened with.
asks() { # description, what the device says, arguments...
    local what=$1 said=$2
    shift 2
    FAKE_DEVICES=4 refused "$what" 1 "$said" "$SH_FAKE/good" -q "$@"
}
asks "--threads: all for one device" ".*device 0 of 6 threads" --threads 6
asks "--device: a share of the threads for each" ".*device [31] of 3 threads" --threads 6 --device 3,1
asks "--device all" ".*device [0-3] of 2 threads" --threads 8 --device all
asks "--device-memory" ".*bytes do not fit into 16777216$" --device-memory 16M
refused "--device: no number" 2 '--device: found "one", expected a whole number' none --device one
refused "--device: a list with a hole" 2 '--device: found "", expected a whole number' none --device 0,,1
refused "--device: negative" 2 "--device: -1 .*0 to 255" none --device=-1
refused "--device: twice the same" 2 "--device: 0,1,0 .*device 0" none --device 0,1,0
refused "--device: all and one" 2 '--device: found "all", expected a whole number' none --device 0,all
refused "--device-memory: no size" 2 '--device-memory: found "some", expected a number of bytes' none --device-memory some
refused "--dtype: what is known" 2 '--dtype: .*"f8".* f32, .*f16' none --dtype f8

# ---- info backends ----

info() { # folder, arguments...
    local SH_MODULE_DIR=$1
    export SH_MODULE_DIR
    shift
    run info backends --threads 2 "$@"
}
# A backend's entry b and the list d of its devices meet these conditions, and stderr is empty.
told() { # description, backend, conditions...
    local what=$1
    shift
    verdict "$what" "$(faults 0 . "" && python - "$@" <<'P' 2>&1
import json, sys
said = json.load(open("log/out"))
b, = [x for x in said["backends"] if x["backend"] == sys.argv[1]]
d = [x for x in said["devices"] if x["backend"] == sys.argv[1]]
for condition in sys.argv[2:]:
    if not eval(condition):
        print(f"# not so: {condition}: {b} {d}")
P
    )"
}
no_device='not b["usable"] and not d'
info none --json
told "info: not built" cuda 'b["state"] == "not built" and b["module"] is None' "$no_device" \
    'b["reason"].startswith("backend cuda: not built: ") and "cuda.so in none " in b["reason"]'
told "info: the processor" cpu 'b["state"] == "usable" and b["usable"] and b["module"] is b["reason"] is None' \
    'len(d) == 1 and d[0]["device"] == 0 and "2 threads" in d[0]["chip"] and d[0]["reason"] is None'
info "$SH_FAKE/needs" --json
told "info: cannot load" cuda 'b["state"] == "cannot load" and b["module"].endswith("/needs/cuda.so")' "$no_device" \
    '"undefined symbol" in b["reason"]'
FAKE_DEVICES=0 info "$SH_FAKE/good" --json
told "info: cannot open" cuda 'b["state"] == "cannot open" and b["module"].endswith("/good/cuda.so")' "$no_device" \
    'b["reason"] == "backend cuda: cannot open: no CUDA-capable device is detected"'
FAKE_DEVICES=1 FAKE_BUSY=0 info "$SH_FAKE/good" --json
told "info: the only device does not open" cuda 'b["state"] == "cannot open" and not b["usable"]' \
    '"device 0 is busy" in b["reason"] and "device 0 is busy" in d[0]["reason"] and d[0]["chip"] is None'
FAKE_DEVICES=3 FAKE_BUSY=1 info "$SH_FAKE/good" --json
told "info: two of three devices open" cuda 'b["state"] == "usable" and b["usable"] and b["reason"] is None' \
    '[x["device"] for x in d] == [0, 1, 2]' '[x["memory_bytes"] for x in d] == [123456789, None, 123456789]' \
    'd[0]["chip"] == "chip A, 2 threads" and d[2]["chip"].startswith("chip B") and d[0]["native_bf16"]' \
    '"device 1 is busy" in d[1]["reason"]'
info "$SH_FAKE/good"
expect "info: as text" 0 "cuda +usable +yes +$SH_FAKE/good/cuda.so" ""
holds "info: as text, the devices" grep -Eq '^ +cuda +0 +123456789 +yes +chip A, 2 threads' log/out
info none --csv
expect "info: as CSV" 0 '^cuda,not built,no,,"?backend cuda: not built' ""
holds "info: as CSV, one line a backend" [ "$(cut -d, -f1 log/out | sort | tr '\n' ' ')" = "backend cpu cuda " ]

# ---- where modules are looked for ----

# The program in a folder of its own, started where a module lies in wait.
mkdir -p elsewhere trap/kernels
cp "$SHEARS" elsewhere/shears
cp "$SH_FAKE/trap/cuda.so" trap && cp "$SH_FAKE/trap/cuda.so" trap/kernels
moved() { # SH_MODULE_DIR or -: info backends
    (
        cd trap || exit 99
        if [ "$1" = - ]; then unset SH_MODULE_DIR; else export SH_MODULE_DIR=$1; fi
        "$work/elsewhere/shears" info backends --json >"$work/log/out" 2>"$work/log/err" </dev/null
    )
    status=$?
}
moved -
told "the current folder is not searched" cuda 'b["module"] is None or "/trap" not in b["module"]'
moved ""
told "an empty SH_MODULE_DIR is none" cuda 'b["module"] is None or "/trap" not in b["module"]'
moved .
expect "the current folder's module ends the program, when it is asked for" 97 "" ""
mkdir elsewhere/kernels && cp "$SH_FAKE/good/cuda.so" elsewhere/kernels
moved -
told "kernels/ next to the program is searched" cuda 'b["module"].endswith("/elsewhere/kernels/cuda.so")' 'b["usable"]'
moved "$work/none"
told "SH_MODULE_DIR is searched alone" cuda 'b["state"] == "not built"' "\"in $work/none \" in b[\"reason\"]"
finish
