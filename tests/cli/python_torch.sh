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
holds "SH_TORCH has torch and transformers" "$torch" -c 'import torch, transformers'

# ---- the recorder ----

recorder() { "$torch" "$cli/record_torch.py" "$1"; }
holds "scores are those of eager attention, codes those of shears trace" recorder families
holds "batches with padding" recorder batches
holds "generation" recorder generation
holds "sparse and summary records" recorder records
holds "encoders, decoders with encoders" recorder others
holds "codes made by PyTorch" recorder codes
holds "what goes wrong" recorder errors
holds "threads" recorder threads
holds "Ctrl-C, the interpreter's end, fork" recorder ends
holds "memory" recorder memory

# ---- the cache ----

cache() { "$torch" "$cli/python_cache.py" "$@"; }
holds "whole texts: kept sets and logits are those of eval" cache every evaluate
holds "token by token: kept sets at every step" cache every steps
holds "generate()" cache generate
holds "texts padded on the left are read and continued as alone" cache padding
holds "plans; memory is what the plan says, at its peak" cache plans
holds "bf16" cache half
holds "errors have their parts" cache errors
finish
