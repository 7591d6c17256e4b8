#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks of one machine take its GPUs in turn, each one by its place there: on the emulated devices (tests/emu), whose
# names tell which one it is. In a pipeline every rank has work, and says what it works on.
. "$(dirname "$0")/lib.sh"
n_sequence=1
. "$cli/ranks_lib.sh"
emulated=${SHEARS%/*}/tests/emu/modules/cuda.so
[ -e "$emulated" ] || { echo "1..0 # SKIP there is no emulated module (no C++ compiler)"; exit 0; }
mkdir modules && ln -s "$(realpath "$emulated")" "$(realpath "$SH_MODULE_DIR/mpi.so")" modules
export SH_MODULE_DIR=$work/modules SH_EMU_STREAMS=lazy
limit=(timeout -s KILL 300)

python "$cli/checkpoint.py" random small num_hidden_layers=4 hidden_size=32 num_attention_heads=4 ffn_dim=64 \
    vocab_size=64 word_embed_proj_dim=32
python -c 'for i in range(2): print([(7 * i + 3 * j * j + i * j) % 64 for j in range(20)])' >few.jsonl
small=(trace --model small --random-weights --tokens few.jsonl --threads 1 -v)

in_line() { # arguments...: by four ranks; who is on what is in `places`, a line each
    "${limit[@]}" mpirun --oversubscribe --tag-output -n 4 "$SHEARS" "${small[@]}" --pipeline --db out/x.db "$@" \
        >log/out 2>log/err </dev/null
    status=$?
    sed -nE 's/^\[[^]]*,([0-9]+)\]<stderr>: ?shears: ([^,;]*)(, .*)?; one layer .*/rank \1: \2/p' log/err | sort -u >places
}
on() { # names...: of the device of each rank, in order
    local rank=0 name
    for name; do echo "rank $((rank++)): $name"; done | diff - places
}
is_traced() { [ $status = 0 ] && grep -Eq 'layers finished +8$' log/out || { cat log/out log/err; false; }; }

run "${small[@]}" --backend cuda --db one.db
expect "one process, one device" 0 "^layers finished +8" "^shears: Emulated device[,;].* one layer "
first="Emulated device"
for n in 1 3 4; do
    export SH_EMU_DEVICES=$n
    case $n in
        1) places=("$first" "$first" "$first" "$first") ;;
        3) places=("$first" "$first 1" "$first 2" "$first") ;;
        4) places=("$first" "$first 1" "$first 2" "$first 3") ;;
    esac
    in_line --backend cuda
    holds "four ranks, $n devices" is_traced
    holds "four ranks, $n devices: each has its own, in turn" on "${places[@]}"
    holds "four ranks, $n devices: one process's content" same one.db out/x.db
    rm -rf out && mkdir out
done
in_line --backend auto
holds "the backend that is found" is_traced
holds "the backend that is found: the same devices" on "${places[@]}"
rm -rf out && mkdir out
in_line --backend cuda --device 2
holds "--device 2" is_traced
holds "--device 2: is every rank's" on "$first 2" "$first 2" "$first 2" "$first 2"
rm -rf out && mkdir out
in_line --backend cpu
holds "on the CPU nobody looks for devices" is_traced
holds "on the CPU nobody looks for devices: none is used" bash -c '[ -s places ] && ! grep "Emulated" places'
rm -rf out && mkdir out

# A run is of one backend: ranks of another are told before the work, not when what they found is joined.
cp one.db out/x.db
sqlite3 out/x.db "DELETE FROM scores WHERE layer = 3; DELETE FROM done WHERE layer = 3"
"${limit[@]}" mpirun --oversubscribe -n 2 "$SHEARS" "${small[@]}" --backend cpu --db out/x.db >log/out 2>log/all </dev/null
status=$?
grep -E '^(shears|hint):' log/all >log/err
expect "ranks of another backend than the run" 1 "" "^shears: out/x.db: .*run .*cuda, .*cpu"
holds "which to ask for" grep -q "^hint: --backend cuda " log/err
in_line --backend cuda
holds "ranks of the run's backend go on" is_traced
holds "ranks of the run's backend: one process's content" same one.db out/x.db
finish
