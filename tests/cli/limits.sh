#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What cannot fit into the memory that the process may take is refused before it is tried, with what would fit. The
# limit is one of address space; a container's or a job's counts likewise (tests/unit/test_host_memory.c).
[ -z "${SH_SANITIZED-}" ] || { echo "1..0 # SKIP a sanitizer takes more address space than any limit leaves"; exit 0; }
. "$(dirname "$0")/lib.sh"
find_numeric

within() { # KiB of address space, the command line
    local limit=$1
    shift
    (
        ulimit -v "$limit"
        run "$@"
        exit "$status"
    )
    status=$?
}

# 2.2e9 weights: 4.5 GB as they lie in the file, which is mapped, and as much in memory, where they stay in 16 bits; 2.2
# GB in codes of 8 bits.
python3 "$cli/checkpoint.py" holes large num_hidden_layers=10 hidden_size=4096 ffn_dim=16384 vocab_size=50272
echo "[2, 5, 9]" >ids.jsonl
within 8000000 generate --model large --tokens ids.jsonl --max-tokens 2 --dtype f32 --threads 1
expect "weights that cannot fit are refused, with a width that would" 1 "" \
    "large: the weights need at least [0-9]* bytes, but the machine has [0-9]* left"
holds "the hint names the width" grep -q "^hint: with --weight-bits 8 they need 2[0-9]\{9\} bytes" log/err
takes() { sed -n 's/.*the weights need at least \([0-9]*\) bytes.*/\1/p' log/err; }
whole=$(takes)
holds "they need 16 bits each, and f32 only for vectors" [ $((whole / 2)) -gt 2219000000 -a $((whole / 2)) -lt 2221000000 ]
within 8000000 generate --model large --tokens ids.jsonl --max-tokens 2 --dtype f16 --threads 1
expect "in f16, too, whose products are f32 on the CPU" 1 "" "large: the weights need at least $whole bytes"
python3 "$cli/checkpoint.py" holes mixed num_hidden_layers=10 hidden_size=4096 ffn_dim=16384 vocab_size=50272 f32_layers=3
within 9000000 generate --model mixed --tokens ids.jsonl --max-tokens 2 --dtype f32 --threads 1
wide=$((3 * 2 * (4 * 4096 * 4096 + 2 * 4096 * 16384)))   # two bytes more for each number of three layers
expect "each tensor counts as the type that it has in the file" 1 "" \
    "mixed: the weights need at least $((whole + wide)) bytes"
within 8000000 eval --model large --tokens ids.jsonl --dtype f32 --threads 1 --json -q
expect "eval reads layer by layer, and needs one of them" 0 '"stream": "layer by layer"' ""
within 8000000 eval --model large --tokens ids.jsonl --dtype f32 --threads 1 --stream --db out/e.db
expect "token by token it needs all" 1 "" "large: the weights need at least [0-9]* bytes"
holds "and no store is left" [ ! -e out/e.db ]

# Blocks of 4 bits stay as they are: 106 MB of addresses where the file is mapped, and as many of a copy in another
# order,
# of which memory has one. In numbers they would be 0.7 GB.
"$numeric" "$SH_TOP/bench/random_gguf.py" q4_0 10x1024x8x4096x10000 packed.gguf --holes >/dev/null
within 310000 generate --model packed.gguf --tokens ids.jsonl --max-tokens 2 --threads 1
expect "a packed model runs in little more than its file" 0 "^0 0$" "written at"

# 1.3e8 weights: 0.3 GB in 16 bits, of which a layer is a tenth. What plan takes of the limit: the file, which it maps
# twice, and one layer; all layers would not fit.
python3 "$cli/checkpoint.py" holes some num_hidden_layers=10 hidden_size=1024 ffn_dim=4096 vocab_size=1000
python3 -c 'for i in range(2): print([2, 5, 9, 7, 4 + i, 8, 3, 6])' >two.jsonl
within 500000 generate --model some --tokens ids.jsonl --max-tokens 2 --threads 1
expect "weights that do not fit here" 1 "" "some: the weights need at least [0-9]* bytes"
within 700000 plan -q --model some --tokens two.jsonl --policy h2o:recent=1 --allocator loss --budget 0.5 --threads 1 --json
expect "plan reads layer by layer, too" 0 '"status": null' ""

# A text's keys and values take 16 MiB.
python3 "$cli/checkpoint.py" holes small num_hidden_layers=4 hidden_size=256 ffn_dim=256 max_position_embeddings=2048
python3 -c 'for i in range(1000): print([2, 5 + i % 50, 9])' >many.jsonl
within 4000000 generate --model small --tokens many.jsonl --count 1000 --max-tokens 2000 --batch 1000 --threads 1
expect "a batch that cannot fit is refused, with one that would" 2 "" \
    "--batch 1000: .*memory.* at most [0-9]+ fit"
most=$(sed -n 's/.*at most \([0-9]*\) fit$/\1/p' log/err)
holds "what would is less than half of the limit" [ "$most" -gt 0 -a $((most * 16)) -lt 2000 ]
find_modules
if [ -n "$modules" ] && [ -n "$emulated" ]; then
    SH_MODULE_DIR=$modules within 6000000 generate --model small --tokens many.jsonl --count 1000 --max-tokens 2000 \
        --batch 1000 --threads 1 --backend cuda --policy tova --budget 2040
    expect "so it is where a device's texts have their caches on the host" 2 "" \
        "--batch 1000: .*memory.* at most [0-9]+ fit"
else
    skip "so it is where a device's texts have their caches on the host" "there is no emulated module"
fi
finish
