# SPDX-License-Identifier: Apache-2.0
"""The speed of a trace's writer compared with that of dd, on a disk and in memory.

    make bench-writer && python3 bench/writer_speed.py --program bench/writer_speed --disk FOLDER

In turn, as often as --repeat says: dd writes as many random bytes as the blobs of a synthetic full trace have
(bs=1M conv=fsync) into the folder, and bench/writer_speed.c writes these blobs, 32 of 1 MB for a layer, through the
writer of a trace into a store there, until it is on the disk. Then the same in --memory (a tmpfs). Each file goes before
the next one is made. dd reads from the tmpfs. Prints one JSON object: bytes/s of every run, medians, and the ratio of
medians, which is the share of dd's speed that a trace reaches. --before: the same driver as another version of the
writer was built with, in turn with the others.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import time


def chip():
    with open("/proc/cpuinfo") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.processor()


def clear(*paths):
    for path in paths:
        for end in "", "-wal", "-shm", "-journal":
            if os.path.exists(path + end):
                os.unlink(path + end)
    os.sync()
    time.sleep(1)                           # what was removed is discarded on the disk


def dd(source, target):
    began = time.monotonic()
    subprocess.run(["dd", "if=" + source, "of=" + target, "bs=1M", "conv=fsync", "status=none"], check=True)
    return os.path.getsize(target) / (time.monotonic() - began)


def writer(program, target, size, heads):
    said = subprocess.run([program, target, str(size), str(heads)], check=True, stdout=subprocess.PIPE)
    return json.loads(said.stdout)


def measure(o, folder, source):
    plain, store = os.path.join(folder, "plain"), os.path.join(folder, "store.db")
    turns = {"dd": None, "writer": (o.program, 32), "writer_64_heads": (o.program, 64)}
    if o.before:
        turns["before"] = (o.before, 32)
    out = {name: [] for name in turns}
    out["writer_cpu_s_per_gb"] = []
    for i in range(o.repeat + 1):                       # the first one makes the system's memory ready
        keep = i > 0
        names = list(turns)[i % len(turns):] + list(turns)[:i % len(turns)]     # nobody always comes after the same
        for what in names:
            turn = turns[what]
            clear(plain, store)
            if not turn:
                speed = dd(source, plain)
            else:
                r = writer(turn[0], store, o.bytes, turn[1])
                speed = r["bytes_per_s"]
                if keep and what == "writer":
                    out["writer_cpu_s_per_gb"].append(round(r["cpu_s"] / r["bytes"] * 1e9, 3))
            if keep:
                out[what].append(round(speed))
    clear(plain, store)
    medians = {name: statistics.median(values) for name, values in out.items()}
    share = {name: round(medians[name] / medians["dd"], 3) for name in turns if name != "dd"}
    return {"runs": out, "median": medians, "share_of_dd": share}


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--program", default="bench/writer_speed")
    options.add_argument("--before")
    options.add_argument("--disk", required=True, help="a folder on the disk")
    options.add_argument("--memory", default="/dev/shm", help="a folder of a tmpfs with room for twice --bytes")
    options.add_argument("--bytes", type=int, default=1 << 30)
    options.add_argument("--repeat", type=int, default=5)
    o = options.parse_args()
    load = os.getloadavg()
    source = os.path.join(o.memory, "writer_speed.source")
    with open(source, "wb") as f:
        for _ in range(o.bytes >> 20):
            f.write(os.urandom(1 << 20))
    try:
        found = {name: measure(o, folder, source) for name, folder in (("disk", o.disk), ("tmpfs", o.memory))}
    finally:
        os.unlink(source)
    print(json.dumps({"chip": chip(), "kernel": platform.release(), "bytes": o.bytes, "load_before": load,
                      "load_after": os.getloadavg(), **found}, indent=1))


if __name__ == "__main__":
    main()
