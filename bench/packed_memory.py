# SPDX-License-Identifier: Apache-2.0
"""Peak memory of generate, eval and trace on a GGUF file of random blocks (random_gguf.py) or a hub folder of random
codes (random_coded.py): what the process has of its own, and pages of the file, which it shares with others and the
system can take back, told apart.

    packed_memory.py ./shears MODEL WORK [TOKENS]

Memory is sampled every 20 ms from /proc (RssAnon, RssFile). Prints one JSON object: bytes, and the share of the file
that they are. For trace the limit is one layer, whose largest size is given."""
import json
import os
import subprocess
import sys
import time


def sizes(pid):
    """RssAnon and RssFile, in bytes."""
    try:
        with open(f"/proc/{pid}/status") as f:
            lines = dict(line.split(":", 1) for line in f)
        return [int(lines[k].split()[0]) * 1024 for k in ("RssAnon", "RssFile")]
    except (OSError, KeyError):
        return [0, 0]


def measured(command):
    began = time.time()
    most = [0, 0, 0]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        while p.poll() is None:
            anon, file = sizes(p.pid)
            most = [max(a, b) for a, b in zip(most, (anon, file, anon + file))]
            time.sleep(0.02)
        _, err = p.communicate()
    if p.returncode:
        sys.exit(f"{' '.join(command)}: {err}")
    return dict(zip(("own", "file", "both"), most)) | {"seconds": round(time.time() - began, 1)}


def main(shears, model, work, tokens):
    os.makedirs(work, exist_ok=True)
    ids, db = os.path.join(work, "ids.jsonl"), os.path.join(work, "packed-memory.db")
    with open(ids, "w") as f:
        f.write(json.dumps([i * 97 % 32000 for i in range(tokens)]) + "\n")
    if os.path.exists(db):
        os.remove(db)
    info = json.loads(subprocess.run([shears, "info", "--model", model, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    size = os.path.getsize(os.path.join(model, "model.safetensors") if os.path.isdir(model) else model)
    layer = info["resident_bytes"] / info["layers"]
    runs = {"generate": ["generate", "--max-tokens", "4"], "eval": ["eval"], "trace": ["trace", "--db", db, "--record", "summary"]}
    result = {"file": size, "layer_at_most": layer, "tokens": tokens, "load": os.getloadavg()}
    for name, args in runs.items():
        r = measured([shears, *args, "--model", model, "--tokens", ids])
        result[name] = r | {"both_over_file": r["both"] / size}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:4], int(sys.argv[4]) if len(sys.argv) == 5 else 64)
