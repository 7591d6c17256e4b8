#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What make check-gpu runs, from the build folder, on a machine with an NVIDIA GPU: the contract tests, the
# fixtures' forward passes and the live cache's tests on the real cuda.so, scripts that drive the program with it,
# then the module's part of the former under compute-sanitizer's tools. All of it goes to the file named by $1, with
# date and chip. Fails, and does not skip, where there is no GPU: a pass always means that something ran. What a tool
# finds inside cuBLAS or the runtime is told apart (gpu_findings.awk) and is no failure, nor is a tool that this machine
# refuses, as some virtual ones do: both are said.
#
#   tests/check_gpu.sh OUT PROGRAM...
#
# SH_GPU_TOOLS: the tools, one after another (memcheck synccheck initcheck racecheck; "": none). SH_GPU_SECONDS:
# what one program may take (300), a script three times that; a kernel that waits for ever is stopped and named.
set -uo pipefail
out=$1
shift
export SH_TEST_MODULE=$PWD/kernels/cuda.so SH_TEST_MODULES=$PWD/kernels
[ -e "$SH_TEST_MODULE" ] || { echo "check-gpu: $SH_TEST_MODULE is not there; configure with CUDA and make"; exit 1; }
command -v nvidia-smi >/dev/null && nvidia-smi -L | grep -q GPU || { echo "check-gpu: this machine has no GPU"; exit 1; }

bad=0
found=9                                 # the tools' exit status when they found something
top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=${SH_GPU_SECONDS-300}
tools=${SH_GPU_TOOLS-memcheck synccheck initcheck racecheck}
tool=
run() { # title, command…: TAP goes to the file, a line to the screen; under $tool its findings, too
    local title=$1 log=$out.tmp whose
    shift
    timeout -k 10 "$seconds" "$@" >"$log" 2>&1
    local rc=$? ok skipped
    [ $rc -ne 124 ] || echo "# stopped after $seconds seconds" >>"$log"
    if [ -n "$tool" ] && [ $rc -ne 124 ]; then
        whose=$(awk -f "$top/gpu_findings.awk" "$log")
        case $? in
        3) { echo "== $title: $whose"; } | tee -a "$out"
           rm -f "$log"
           return ;;
        0) [ $rc -ne $found ] || rc=0 ;;                # none of them ours
        *) rc=$found ;;
        esac
        sed 's/^/# /' <<<"$whose" >>"$log"
    fi
    ok=$(grep -c '^ok ' "$log")
    skipped=$(grep -c '^ok .*# SKIP' "$log")
    { echo "== $title: status $rc, $ok ok, $skipped of them skipped, $(grep -c '^not ok ' "$log") not ok"
      grep -E '^(ok|not ok|#)|ERROR SUMMARY|RACECHECK SUMMARY' "$log"; } | tee -a "$out" | grep '^=='
    if [ $rc -ne 0 ] || grep -q '^not ok' "$log" || [ "$ok" -eq 0 ]; then
        bad=1
        tail -n 40 "$log" >>"$out"
    fi
    rm -f "$log"
}

mkdir -p "$(dirname "$out")"
{ date -u +%Y-%m-%d; nvidia-smi -L | sed 's/ (UUID.*//'; nvcc --version | tail -n 2; } >"$out"
programs=()
for program; do
    case $program in
    *.sh) seconds=$((3 * seconds)) run "$(basename "$program")" bash "$program" ;;
    *) SH_TEST_FULL=1 run "$(basename "$program")" "$program"
       programs+=("$program") ;;
    esac
done
for tool in $tools; do
    if ! command -v compute-sanitizer >/dev/null; then
        echo "== compute-sanitizer is not installed: $tools were not run" | tee -a "$out"
        bad=1
        break
    fi
    for program in "${programs[@]}"; do
        SH_TEST_ONLY="(module)" run "$tool $(basename "$program")" compute-sanitizer --tool "$tool" --error-exitcode $found \
            "$program"
    done
done
[ $bad -eq 0 ] && echo "check-gpu: all good, see $out"
exit $bad
