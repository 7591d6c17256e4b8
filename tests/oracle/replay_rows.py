# SPDX-License-Identifier: Apache-2.0
"""Golden files of the replay test from the shared fixtures: the reference of offline replay as it is, and
the attention it was made from, causal halves only.

    python3 tests/oracle/replay_rows.py ../shared/fixtures tests/golden/policies

attention.safetensors: <checkpoint>.<sequence> float32 [layer, head, T (T + 1) / 2].
"""
import json
import os
import shutil
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

fixtures, golden = sys.argv[1:]
os.makedirs(golden, exist_ok=True)
for name in ("offline.json", "offline.safetensors"):
    shutil.copy(os.path.join(fixtures, "policies", name), golden)
packed = {}
for case in json.load(open(os.path.join(golden, "offline.json")))["cases"]:
    key = case["checkpoint"] + "." + case["sequence"]
    if key in packed:
        continue
    with safe_open(os.path.join(fixtures, case["checkpoint"], "ref.safetensors"), "np") as f:
        attention = f.get_tensor(case["sequence"] + ".attn")
    rows, columns = np.tril_indices(attention.shape[-1])
    packed[key] = np.ascontiguousarray(attention[:, :, rows, columns], dtype=np.float32)
save_file(packed, os.path.join(golden, "attention.safetensors"))
