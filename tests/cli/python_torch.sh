#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What of the package for Python needs PyTorch and transformers. SH_TORCH names a Python that has them.
. "$(dirname "$0")/lib.sh"
torch=${SH_TORCH-}
[ -n "$torch" ] || { echo "1..0 # SKIP SH_TORCH does not name a Python with torch and transformers"; exit 0; }
built=$(dirname "$SHEARS")
[ -e "$built/libshears.so.0" ] || { echo "1..0 # SKIP the library was not built here"; exit 0; }
[ -z "${SH_SANITIZED-}" ] || { echo "1..0 # SKIP Python does not begin with the sanitizers' runtime"; exit 0; }
export PYTHONDONTWRITEBYTECODE=1 SHEARS_LIBRARY=$built/libshears.so.0 PYTHONPATH=${SH_TOP:?the source tree}/python
export HF_HUB_OFFLINE=1 PYTHONWARNINGS=ignore

# The checks of a script run in one process, one after another; the scripts next to each other.
begin() { # script, checks...
    mkdir "$1" && (cd "$1" && exec "$torch" "$cli/$1.py" "${@:2}" >"../log/$1" 2>&1) &
}
report() { # script, check, what it shows
    awk -v check="$2" '$1 == "==" && $2 == check { exit } $1 == "==" { said = ""; next } { said = said $0 "\n" }
        END { printf "%s", said }' "log/$1" >log/one
    if grep -qx "== $2 good" "log/$1"; then ok "$3"; grep '^#' log/one; else not_ok "$3"; sed 's/^/# /' log/one; fi
}

begin record_torch families batches generation records others codes errors threads ends memory
begin python_cache evaluate steps generate padding plans half copies errors threads ends
wait
report record_torch families "scores are those of eager attention, codes those of shears trace"
report record_torch batches "batches with padding"
report record_torch generation "generation"
report record_torch records "sparse and summary records"
report record_torch others "encoders, decoders with encoders"
report record_torch codes "codes made by PyTorch"
report record_torch errors "what goes wrong"
report record_torch threads "threads"
report record_torch ends "Ctrl-C, the interpreter's end, fork"
report record_torch memory "memory"

report python_cache evaluate "whole texts: kept sets and logits are those of eval"
report python_cache steps "token by token: kept sets at every step"
report python_cache generate "generate()"
report python_cache padding "texts padded on the left are read and continued as alone"
report python_cache plans "plans; memory is what the plan says, at its peak"
report python_cache half "bf16"
report python_cache copies "copies of a cache"
report python_cache errors "errors have their parts"
report python_cache threads "two threads, each with a cache; two with one"
report python_cache ends "fork, Ctrl-C, the interpreter's end"
holds "type hints: of what needs PyTorch, too" "$torch" "$cli/python.py" hints
finish
