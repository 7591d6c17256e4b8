#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make gpu-pack: everything that a day at a GPU needs in one file, for a machine with glibc 2.34, libstdc++ and libgcc of
# gcc 11, Python and, for cuBLAS, PyTorch or a toolkit. From the build folder:
#
#     gpu_pack.sh SOURCES FILE PROGRAM...      programs and modules by their path in the build folder; MODULE=PATH takes a
#                                              file along under another path
#
# Fails with a sentence if the file is larger than 20 MB, or if something in it asks for a newer glibc or libstdc++.
# GPU_PACK_XZ: options of xz, for a faster and larger one. GPU_PACK_MOST: another limit, in
# bytes.
set -euo pipefail
sources=$1 file=$2 most=${GPU_PACK_MOST:-20000000}
shift 2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/shears-gpu-pack
mkdir -p "$top/lib"
fail() { echo "gpu-pack: $*" >&2; exit 1; }

for program; do
    from=${program#*=} to=${program%%=*}
    [ -f "$from" ] || fail "$from has not been built"
    mkdir -p "$top/$(dirname "$to")"
    strip -o "$top/$to" "$from"
done

# The tests' golden files, the embedded model that one of them runs, the day and what it calls.
for path in tests/golden/checkpoints tests/golden/session demo/model/config.json; do
    mkdir -p "$top/$(dirname $path)"
    cp -r "$sources/$path" "$top/$path"
done
# Of the newer families, those with operations that no other has: numbers hardly shrink, and the test skips the rest. Of
# scans, nemotron_h's; test_scan and test_lru try the others.
find "$top/tests/golden/checkpoints/modern" -mindepth 1 -maxdepth 1 -type d |
    grep -vE '/(chunks|latent|qwen3_5_moe|sinks|lfm2_bias|nemotron_h)$' | xargs rm -r
# A test counts what that model's caches take of the device; its weights do not matter and would be a fifth of the pack.
weights=demo/model/model.safetensors
header=$(($(od -An -tu8 -N8 "$sources/$weights") + 8))
{ head -c $header "$sources/$weights"; head -c $(($(stat -c %s "$sources/$weights") - header)) /dev/zero; } >"$top/$weights"
cp "$sources"/bench/{gpu_day.sh,gpu_*.py,torch_speed.py,trace_match.py,trace_speed.py,engine_gpu.py,random_model.py} "$top/bench/"
cp "$sources/tests/gpu_findings.awk" "$top/tests/"
cp "$sources/LICENSE" "$top/"

# Shared libraries, those of libraries too; what every machine of that kind has stays out.
find "$top" -type f -perm -u+x -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -print >"$stage/programs"
while read -r program; do ldd "$program" | sed -n 's/^\t\(lib[^ ]*\) => \([^ ]*\).*/\1 \2/p'; done <"$stage/programs" | sort -u |
    grep -Ev '^lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|cublas|cublasLt|cudart|cuda)\.so' |
    while read -r name path; do
        [ "$path" != not ] || fail "$name, which a program needs, is not here"
        cp -L "$path" "$top/lib/$name"
        strip --strip-unneeded "$top/lib/$name"
    done

newest() { objdump -T "$1" | grep -F '*UND*' | sed -n "s/.*(\{0,1\}$2_\([0-9.]*\)).*/\1/p" | sort -V | tail -n 1; }
while read -r program; do
    for limit in GLIBC:2.34 GLIBCXX:3.4.29 CXXABI:1.3.13 GCC:12.0.0; do
        found=$(newest "$program" "${limit%:*}")
        [ "$(printf '%s\n' "$found" "${limit#*:}" | sort -V | tail -n 1)" = "${limit#*:}" ] ||
            fail "${program#"$top"/} needs ${limit%:*}_$found, and a machine with ${limit%:*}_${limit#*:} is to run it"
    done
done < <(cat "$stage/programs"; find "$top/lib" -type f)

# For a person at a prompt; the day sets the same for its programs.
cat >"$top/env.sh" <<'S'
# . ./env.sh, in this folder: then ./shears runs here.
LD_LIBRARY_PATH="$(python3 bench/gpu_libraries.py "$PWD")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
S
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - shears-gpu-pack |
    xz ${GPU_PACK_XZ---x86 --lzma2=preset=6,dict=192MiB} >"$file.part"
bytes=$(stat -c %s "$file.part")
[ "$bytes" -le "$most" ] || { rm -f "$file.part"; fail "$file would have $bytes bytes, and $most are the limit"; }
mv "$file.part" "$file"
echo "$file: $bytes bytes; the largest of what is in it, unpacked:"
(cd "$top" && find . -type f -printf '%s %P\n' | sort -rn | sed -n '1,6s/^/    /p')
