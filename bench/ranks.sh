#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks. Run in the build folder after `make bench-ranks`, on a machine that does nothing else; one JSON line each:
#
#   bench/ranks.sh WORK [WHAT...]
#
#   one, two   replay by one process and by two ranks, of one thread each, on a trace of the embedded model that
#              is made in the folder WORK unless WORK/traces.db is there; what both find is compared
#   pair       two processes side by side that each do all of it and know nothing of each other: what two cores of
#              this machine can do at most is twice one's time over this one's
#   overhead   what handing out units of one second to 64 ranks costs
#
# Without WHAT everything, the replays three times in turn. For a ratio take the least of each.
set -euo pipefail
here=$PWD
work=$1
shift
mkdir -p "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SH_MODULE_DIR=$here/src/ranks
if [ "$*" != overhead ] && [ ! -e "$work/traces.db" ]; then
    "$here/shears" demo "$work/demo" -q >/dev/null
    "$here/shears" trace --model "$work/demo/demo-opt" --text "$work/demo/natural.txt" --length 512 --count 16 \
        --vectors v --db "$work/new.db" -q >/dev/null
    mv "$work/new.db" "$work/traces.db"
fi
replay() { # store, launcher...
    local store=$1
    shift
    cp "$work/traces.db" "$work/$store"
    "$@" "$here/shears" replay --db "$work/$store" --policy all --budget 0.05..1.0/20 --threads 1 -q >/dev/null
}
timed() { # what, processes, command...: seconds by the clock, and of processor time of all that ran
    local what=$1 processes=$2
    shift 2
    TIMEFORMAT='%R %U %S'
    { time "$@" 2>&3; } 3>&2 2>"$work/times"
    awk -v what="$what" -v n="$processes" '{
        printf "{\"what\": \"%s\", \"processes\": %d, \"seconds\": %.2f, \"cpu_seconds\": %.2f}\n", what, n, $1, $2 + $3
    }' "$work/times"
}
pair() {
    replay pair-1.db env &
    replay pair-2.db env
    wait $!
}
same() {
    [ ! -e "$work/one.db" ] || [ ! -e "$work/two.db" ] ||
        [ "$("$here/shears" info "$work/one.db" --hash -q | grep hash)" = "$("$here/shears" info "$work/two.db" --hash -q | grep hash)" ] ||
        { echo "two ranks find something else than one process" >&2; exit 1; }
}
for what in ${*:-one two pair one two pair one two pair overhead}; do
    case $what in
    one) timed replay 1 replay one.db env ;;
    two) timed replay 2 replay two.db mpirun --bind-to core -n 2; same ;;
    pair) timed "replay, both all of it" 2 pair ;;
    overhead) mpirun --oversubscribe -n 64 "$here/bench/ranks_overhead" 5 1 ;;
    *) echo "$what: expected one, two, pair or overhead" >&2; exit 2 ;;
    esac
done
