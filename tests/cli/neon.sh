#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Products from packed weights on a 64-bit ARM processor: compiled by a cross compiler, run in an emulator.
cd "${SH_TOP:-.}" || exit 99
cc=aarch64-linux-gnu-gcc emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static)
command -v $cc >/dev/null && [ -n "$emulator" ] || {
    echo "1..0 # SKIP there is no $cc or no qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user)"
    exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$cc -std=c11 -D_GNU_SOURCE -I. -DCPU_VARIANT=base -DCPU_FLOATS=4 -O2 -ftree-vectorize -fno-math-errno \
    -fno-trapping-math -ffp-contract=fast -static -pthread -o "$work/packed" tests/cli/neon_packed.c \
    kernels/cpu/gemm_packed.c kernels/cpu/gemm_packed_row.c kernels/cpu/gemm_many_rows.c \
    src/model/files/gguf_type.c src/model/files/gguf_iq.c src/base/iq_points.c \
    src/base/team.c src/base/mem.c src/base/rng.c -lm && "$emulator" "$work/packed" || echo "Bail out! it does not compile or run"
