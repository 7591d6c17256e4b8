#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A day at a GPU, in three calls of at most nine minutes each (bench/README.md says what each one does):
#
#     sh bench/gpu_day.sh STEP [PACK]          STEP: 1, 2 or 3; PACK: what make gpu-pack wrote
#
# With a PACK it is unpacked into a folder of its own, which is removed at the end, and its own programs run; without
# one those of the current folder, if it has been built, else those next to this script. Only sh and Python 3 are
# needed. Files go to $OUT, or to the current folder. Variables:
#
#     OUT                     folder of the result files gpu-day-STEP-*
#     GPU_DAY_WORK            folder of weights and stores (default: /dev/shm where it has room, else TMPDIR, else /tmp)
#     GPU_DAY_SECONDS         what the step may take in all (default: 540)
#     SHEARS_GPU=emulated     the emulated device in place of a GPU, with small shapes: no number is then from a GPU
set -u
GPU_DAY_BEGAN=$(date +%s)
export GPU_DAY_BEGAN PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
step=${1-} pack=${2-}
case $step in 1 | 2 | 3) ;; *) echo "usage: sh gpu_day.sh 1|2|3 [PACK]" >&2; exit 2 ;; esac
OUT=${OUT:-$PWD}
mkdir -p "$OUT" || exit 1
OUT=$(cd "$OUT" && pwd)
export OUT
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "gpu_day.sh: there is no $python here; PYTHON=FILE names another" >&2; exit 3; }

if [ -z "$pack" ]; then
    top=$(cd "$(dirname "$0")/.." && pwd)
    [ -x ./shears ] && [ -d ./bench ] && build=$PWD || build=$top
    exec "$python" "$top/bench/gpu_day.py" "$step" --top "$top" --build "$build"
fi

[ -r "$pack" ] || { echo "gpu_day.sh: $pack cannot be read; make gpu-pack writes it" >&2; exit 1; }
parent=${TMPDIR:-/tmp}
[ -d /dev/shm ] && [ -w /dev/shm ] && parent=/dev/shm
unpacked=$(mktemp -d "$parent/shears-pack.XXXXXX") || exit 1
child=
trap 'rm -rf "$unpacked"' EXIT
trap '[ -z "$child" ] || { kill -TERM "$child"; wait "$child"; }; exit 143' TERM INT HUP
# Not every Python has xz, and not every tar; one of them will.
"$python" -m tarfile -e "$pack" "$unpacked" 2>"$unpacked/why" || tar -xJf "$pack" -C "$unpacked" 2>>"$unpacked/why" || {
    echo "gpu_day.sh: $pack cannot be unpacked into $unpacked:" >&2
    cat "$unpacked/why" >&2
    exit 1
}
top=$unpacked/shears-gpu-pack
"$python" "$top/bench/gpu_day.py" "$step" --top "$top" --build "$top" &
child=$!
wait "$child"
