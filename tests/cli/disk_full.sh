#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A disk that fills up while a trace, a figure, an export or a hidden-state file is written: an error
# that names the file and the reason, nothing half-written, and what was committed stays readable.
. "$(dirname "$0")/lib.sh"
own_mounts
if [ -z "$alone" ]; then
    skip "full disk" "no file system can be mounted here"
    finish
    exit 0
fi

python "$cli/checkpoint.py" random model num_hidden_layers=4 hidden_size=256 num_attention_heads=8 vocab_size=512
python -c 'for i in range(10): print([(7 * i + 3 * j * j + i * j) % 512 for j in range(192)])' >tokens.jsonl
command=(trace --model model --random-weights --tokens tokens.jsonl -q --codec f32)
run "${command[@]}" --db whole.db
expect "with room" 0 "^layers finished +40" ""
echo "# the store takes $(($(stat -c %s whole.db) / 1024)) KiB"

mkdir disk
disk() { # KiB: an empty disk of that size
    umount disk 2>/dev/null
    mount -t tmpfs -o size="$1k" none disk || exit 99
}
room() { mount -o remount,size="$1k" none disk || exit 99; }
names_the_reason() { grep -qiE 'full|No space left' log/err; }

# ---- a store: full at once, while it is set up, and after some layers ----

for size in 4 1024 1500 2048 3072 8192 16384; do
    disk $size
    run "${command[@]}" --db disk/x.db
    expect "$size KiB: an error that names the file" 1 "" "^shears: disk/x\.db"
    holds "$size KiB: and the reason" names_the_reason
    if [ -e disk/x.db ]; then
        run verify --db disk/x.db -q --json
        expect "$size KiB: what is in the store is sound" 0 '"sound": true' ""
        holds "$size KiB: it was worth keeping" grep -qE '"layers_done": [1-9]' log/out
        run info disk/x.db
        expect "$size KiB: info reads it" 0 "^layers finished +[1-9]" ""
    else
        holds "$size KiB: nothing is left" [ -z "$(ls -A disk)" ]
    fi
    room 65536
    run "${command[@]}" --db disk/x.db
    expect "$size KiB, then room: the same command finishes" 0 "^layers finished +40" ""
    holds "$size KiB, then room: it equals a run with room" python - <<'P'
from scores import *
same_blobs(blobs("disk/x.db"), blobs("whole.db"))
P
    holds "$size KiB, then room: no other file is left" [ "$(ls -A disk)" = x.db ]
done

# ---- hidden states that are kept in a file ----

disk 3000
run "${command[@]}" --db disk/x.db --memory 1
expect "hidden states: an error that tells what did not fit" 1 "" \
    "^shears: disk: no room for a temporary file of 1966080 bytes of hidden states: No space left on device"
holds "hidden states: nothing is left" [ -z "$(ls -A disk)" ]

# ---- exports and figures ----

full_disk() { disk 64 && head -c 65536 /dev/zero >disk/filler 2>/dev/null; }
for kind in npy tsv safetensors; do
    full_disk
    run export --db whole.db --sequence 0 --layer 1 --head 2 -o "disk/head.$kind"
    expect "export to $kind: an error that names the file and the reason" 1 "" \
        "^shears: disk/head.$kind: cannot be written: No space left on device"
    holds "export to $kind: nothing is left" [ "$(ls -A disk)" = filler ]
done
disk 64
echo before >disk/head.npy
run export --db whole.db --sequence 0 --layer 1 --head 2 -o disk/head.npy
expect "export over a file: refused" 1 "" "^shears: disk/head.npy: cannot be written: No space left on device"
holds "export over a file: the old one is still there" [ "$(ls -A disk) $(cat disk/head.npy)" = "head.npy before" ]

full_disk
run plot heatmap --db whole.db -q --script -o disk/x.gp
expect "a figure's script: an error that names the file and the reason" 1 "" "^shears: figure disk/x.gp: .*No space left on device"
holds "a figure's script: nothing is left" [ "$(ls -A disk)" = filler ]
if command -v gnuplot >/dev/null; then
    for kind in svg png pdf; do
        full_disk
        run plot heatmap --db whole.db -q -o disk/x.$kind
        expect "a figure as $kind: an error that names the file" 1 "" "^shears: figure disk/x.$kind: "
        holds "a figure as $kind: nothing is left" [ "$(ls -A disk)" = filler ]
    done
else
    skip "a figure" "there is no gnuplot"
fi

# ---- results that are kept in a store ----

disk 65536
cp whole.db disk/x.db
room $(($(stat -c %s whole.db) / 1024))
run persistence --db disk/x.db --json
expect "persistence of a store on a full disk: the figures are told, and that they are not kept" 0 '"alpha": "row"' \
    '^shears: the results are not .*: disk/x.db: .*full$'
run verify --db disk/x.db -q
expect "persistence of a store on a full disk: it stays sound" 0 "^sound +yes" ""
umount disk
finish
