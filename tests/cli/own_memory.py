# SPDX-License-Identifier: Apache-2.0
"""What capacity --engine shears says compared with what the process has: own_memory.py SHEARS FORMAT...

For each FORMAT.gguf, the anonymous memory of generate and its pages of files, sampled until it ends, as long as its
weights and caches are there. Of two formats what differs is the weights alone, so that the rest cannot hide an error."""
import json
import subprocess
import sys
import time

PROMPT, LENGTH = 300, 420


def sampled(command):
    """The most of RssAnon and of RssFile, in bytes."""
    most = [0, 0]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as p:
        while p.poll() is None:
            try:
                with open(f"/proc/{p.pid}/status") as f:
                    lines = dict(line.split(":", 1) for line in f)
                now = [int(lines[k].split()[0]) * 1024 for k in ("RssAnon", "RssFile")]
                most = [max(x) for x in zip(most, now)]
            except (OSError, KeyError):
                pass
            time.sleep(0.002)
        assert not p.returncode, p.stderr.read()
    return most


def main(shears, *formats):
    with open("ids.jsonl", "w") as f:
        f.write(json.dumps([i * 97 % 2000 for i in range(PROMPT)]) + "\n")
    said, found = {}, {}
    for k in formats:
        out = subprocess.run([shears, "capacity", "--engine", "shears", "--model", f"{k}.gguf", "--length", str(LENGTH),
                              "--json"], check=True, stdout=subprocess.PIPE).stdout
        said[k] = {t["term"].strip(): t["bytes"] for t in json.loads(out)["terms"]}
        found[k] = sampled([shears, "generate", "--model", f"{k}.gguf", "--tokens", "ids.jsonl", "--max-tokens",
                            str(LENGTH - PROMPT), "-q", "--threads", "2"])
        own, mapped = said[k]["own memory"], said[k]["mapped"]
        more = found[k][0] - own
        assert 0 <= more < 24 << 20, f"{k}: {own} bytes of its own, found {found[k][0]}"
        assert mapped <= found[k][1] < mapped + (40 << 20), f"{k}: {mapped} bytes mapped, found {found[k][1]}"
    first = formats[0]
    for k in formats[1:]:
        own = said[k]["own memory"] - said[first]["own memory"]
        real = found[k][0] - found[first][0]
        assert abs(own - real) < 12 << 20, f"{k} and {first}: {own} bytes apart, found {real}"


main(*sys.argv[1:])
