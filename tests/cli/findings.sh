#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whose what compute-sanitizer finds is (tests/gpu_findings.awk), on outputs in its documented form; and what check-gpu
# makes of it, with stand-ins for the tools of a GPU machine.
. "$(dirname "$0")/lib.sh"

samples=$SH_GOLDEN/sanitizer
whose() { # sample, exit status, parts of the answer...
    local sample=$1 wanted=$2 part
    shift 2
    awk -f "$SH_TOP/tests/gpu_findings.awk" "$samples/$sample.txt" >log/out 2>log/err
    status=$?
    verdict "$sample" "$(
        faults "$wanted" . ""
        for part; do grep -qF -- "$part" log/out || { echo "# not said: $part"; sed 's/^/#   /' log/out; }; done
    )"
}

whose clean 0 "findings: 0 ours, 0 in cuBLAS, 0 in the runtime"
whose memcheck 1 "findings: 1 ours, 1 in cuBLAS, 1 in the runtime" \
    "ours: Invalid __global__ read of size 4 bytes, void slots_scores<32>(slots, slots_step) (1)" \
    "in cuBLAS: Invalid __global__ read of size 16 bytes, void cutlass::Kernel2" "cuGetProcAddress_v2"
whose memcheck_theirs 0 "findings: 0 ours, 1 in cuBLAS, 1 in the runtime"
whose racecheck 1 "findings: 1 ours, 1 in cuBLAS, 0 in the runtime" "ours: Error: Race reported between Write access" \
    "in cuBLAS: Warning: Race reported between Write access, void gemvx::kernel"
whose initcheck 1 "findings: 1 ours, 1 in cuBLAS, 0 in the runtime" "ours: Host API memory access error"
whose synccheck 1 "findings: 1 ours, 0 in cuBLAS, 0 in the runtime" "ours: Barrier error detected"
whose refused 3 "refused: the tool does not work on this machine: Error: Device not supported"
whose refused_internal 3 "refused: the tool does not work on this machine: Internal Sanitizer Error"

# ---- check-gpu, with stand-ins ----

mkdir -p bin build/kernels
: >build/kernels/cuda.so
printf '#!/bin/sh\necho "GPU 0: a stand-in (UUID: x)"\n' >bin/nvidia-smi
printf '#!/bin/sh\necho "release 0"\n' >bin/nvcc
printf '#!/bin/sh\necho "1..1"\necho "ok 1 - it ran"\n' >bin/program
cat >bin/compute-sanitizer <<'S'
#!/bin/sh
# compute-sanitizer --tool TOOL --error-exitcode N PROGRAM, that finds what $SAMPLE has
cat "$SAMPLE"
"$5"
grep -q 'SUMMARY: 0 errors' "$SAMPLE" || exit "$4"
S
chmod +x bin/*
checked() { # sample: check_gpu.sh with one tool
    (
        cd build || exit 99
        export SAMPLE=$samples/$1.txt SH_GPU_TOOLS=memcheck
        PATH=$work/bin:$PATH bash "$SH_TOP/tests/check_gpu.sh" "$work/report" "$work/bin/program"
    ) >log/out 2>log/err
    status=$?
}
checked clean
expect "check-gpu: nothing found" 0 "^check-gpu: all good" ""
checked memcheck_theirs
expect "check-gpu: what is not ours is no failure" 0 "^check-gpu: all good" ""
holds "check-gpu: and is in the report" grep -q "^# findings: 0 ours, 1 in cuBLAS, 1 in the runtime" report
checked memcheck
expect "check-gpu: what is ours is one" 1 "^== memcheck program: status 9" ""
holds "check-gpu: and is in the report, too" grep -q "^# ours: Invalid __global__ read" report
checked refused
expect "check-gpu: a tool that is refused is said, and is no failure" 0 "^== memcheck program: refused: " ""
finish
