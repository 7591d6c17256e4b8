#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How fast shears simulate is: a million requests on one core, lightly loaded, at the limit, and with a cache so small
# that sequences are preempted; generated and from a file. Prints seconds of one core and of the clock, requests for
# each of the former, and the peak of memory, which does not grow with the number of requests: the last line is of
# a tenth of them.
#
#   bench/simulate_speed.sh ./shears /tmp/work
set -euo pipefail
shears=$(realpath "$1") work=$2
mkdir -p "$work"
python3 - "$work/million.csv" <<'END'
import random, sys
dice, now = random.Random(1), 0.0
with open(sys.argv[1], "w") as f:
    f.write("arrival_s,prompt_tokens,output_tokens\n")
    for _ in range(10**6):
        now += dice.expovariate(20)
        f.write(f"{now:.6f},{max(1, int(dice.lognormvariate(5.8, 0.9)))},{max(1, int(dice.expovariate(1 / 200)))}\n")
END
grep -m 1 "model name" /proc/cpuinfo | sed 's/.*: /chip     /'
measure() { # name, words...
    local name=$1
    shift
    python3 - "$name" taskset -c 0 "$shears" simulate --model llama-3.1-8b --gpu H100-SXM --csv "$@" <<'END'
import csv, io, os, resource, subprocess, sys, time
start = time.time()
out = subprocess.run(sys.argv[2:], check=True, capture_output=True, text=True).stdout
use = resource.getrusage(resource.RUSAGE_CHILDREN)
wall, cpu, peak = time.time() - start, use.ru_utime + use.ru_stime, use.ru_maxrss / 1024
r = next(csv.DictReader(io.StringIO(out)))
print(f"{sys.argv[1]:24} {cpu:6.2f} s of CPU {wall:6.2f} s {int(r['requests']) / cpu:8.0f} requests/s {int(r['steps']):9} steps "
      f"batch {float(r['running_mean']):6.1f} {int(r['preemptions']):8} preempted {peak:6.1f} MiB")
END
}
random="--prompt lognormal:500:0.9 --output exp:200 --requests 1000000"
measure "generated, 5 a second" --rate 5 $random
measure "generated, 40 a second" --rate 40 $random
measure "generated, overloaded" --rate 400 $random
measure "the same, 24 GiB" --rate 400 --memory 24G $random
measure "a file, 20 a second" --workload "$work/million.csv"
measure "100000, overloaded" --rate 400 ${random/1000000/100000}
rm "$work/million.csv"
