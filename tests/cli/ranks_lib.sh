# SPDX-License-Identifier: Apache-2.0
# Sourced after lib.sh by the tests of ranks: mpirun, whatever it needs, and who among its processes is which rank. In
# the folder are a model and tokens.jsonl of $n_sequence sequences.
command -v mpirun >/dev/null || { echo "1..0 # SKIP mpirun is not here"; exit 0; }
[ -e "${SHEARS%/*}/src/ranks/mpi.so" ] || { echo "1..0 # SKIP mpi.so is not built"; exit 0; }
mpirun --version 2>&1 | grep -q "Open MPI" || { echo "1..0 # SKIP mpirun is not Open MPI's"; exit 0; }
export SH_MODULE_DIR=${SHEARS%/*}/src/ranks
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export LSAN_OPTIONS=detect_leaks=0      # of MPI's own, with a sanitizer
limit=(timeout -s KILL 120)

python "$cli/checkpoint.py" random model num_hidden_layers=4 hidden_size=128 num_attention_heads=8 ffn_dim=512 \
    vocab_size=512
python -c 'import sys
for i in range(int(sys.argv[1])): print([(7 * i + 3 * j * j + i * j) % 512 for j in range(240)])' "$n_sequence" >tokens.jsonl
trace=(trace --model model --random-weights --tokens tokens.jsonl --threads 1)
traced="^layers finished +$((4 * n_sequence))"          # what it says at its end

start() { # how many, arguments...: in the background, $launcher, with ranks that may be lost
    local n=$1
    shift
    "${limit[@]}" mpirun --oversubscribe --enable-recovery -n "$n" "$SHEARS" "$@" >log/out 2>log/all </dev/null &
    launcher=$!
}
ended() {
    wait $launcher
    status=$?
    grep -E '^(shears|hint):' log/all >log/err          # mpirun has something to say about every rank that dies
}
ranks() { # how many, arguments...: like run
    start "$@"
    ended
}
pid_of() { # rank: of a process that $launcher started, while it lives
    local mpirun p
    mpirun=$(ps -o pid= --ppid $launcher | head -n 1)
    for p in ${mpirun:+$(ps -o pid= --ppid $mpirun)}; do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "$p"
    done
}
committed() { # store: has anything come since its tables were made? SQLite counts in bytes 24 to 27
    [ -s "$1" ] && [ "$(od -An -j24 -N4 --endian=big -tu4 "$1")" -gt 1 ]
}
at_work() { # rank, store: $hit is its process once it has finished something, or empty when all was quicker
    hit=
    while ! committed "$2.rank-000$1" && kill -0 $launcher 2>/dev/null; do sleep 0.01; done
    hit=$(pid_of "$1")
}
hold() { # store, ranks...: who gets a unit cannot make its store for it and stands still, until `let_go`
    rm -f held
    python3 - "$@" <<'P' &
import fcntl, signal, sys
files = [open(f"{sys.argv[1]}.rank-{int(rank):04d}.shears-new", "w") for rank in sys.argv[2:]]
for f in files:
    fcntl.flock(f, fcntl.LOCK_EX)
open("held", "w").close()
signal.pause()
P
    holder=$!
    while [ ! -e held ]; do sleep 0.02; done
}
let_go() { kill $holder && wait $holder 2>/dev/null; }
has_unit() { # process, rank, store: it stands still
    ls -l "/proc/$1/fd" 2>/dev/null | grep -q "${3##*/}.rank-000$2.shears-new"
}
only() { # the files that may be in out/
    [ "$(ls -A out)" = "$*" ] || { ls -A out; false; }
}
at_it() { # store: processes of this test alone that work on it
    local p
    for p in $(pgrep -f -- "[-]-db $1"); do
        [ "$(readlink "/proc/$p/cwd")" = "$work" ] && ps -o pid=,stat=,args= -p "$p" | grep "^ *[0-9]* [^ ]* [^ ]*shears "
    done
}
gone() { # store: nobody works on it
    for _ in $(seq 50); do
        [ -n "$(at_it "$1")" ] || return 0
        sleep 0.1
    done
    at_it "$1"
    false
}
tidy() { # what, store: at the end
    holds "$1: no rank is left" gone "$2"
    holds "$1: one file is left" only "${2#out/}"
    rm -rf out && mkdir out
}
