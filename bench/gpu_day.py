# SPDX-License-Identifier: Apache-2.0
"""One step of a day at a GPU: the parts of gpu_parts.py one after another, each within a limit of its own and all
within the step's. Started by gpu_day.sh. What a part prints is in the files as soon as it is printed:

    gpu-day-STEP-summary.txt    a line for each part as it ends; what parts say in steps 2 and 3
    gpu-day-STEP-numbers.jsonl  every line that is a JSON object, with the name of its part
    gpu-day-1-log.txt           what the parts of step 1 say: tests, findings

A part ends as done, FAILED, stopped (its time was over), or left out (status 3: it says what is absent)."""
import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import gpu_libraries
import gpu_parts

EMULATED = ("EMULATED DEVICE: nothing here ran on a GPU. These runs try the programs; no number in this file is a "
            "GPU's.")
ROOM = 45 << 30                                         # weights, a store of ours, PyTorch's


class Files:
    """The step's result files; a line is whole and on its way to the disk when `write` returns."""

    def __init__(self, folder, step, emulated):
        begin = f"{folder}/gpu-day-{step}-"
        self.lock, self.emulated = threading.Lock(), emulated
        self.summary, self.numbers = open(begin + "summary.txt", "w"), open(begin + "numbers.jsonl", "w")
        self.log = open(begin + "log.txt", "w") if step == 1 else self.summary
        if emulated:
            for f in {self.summary, self.log}:
                self.write(f, EMULATED)
            self.write(self.numbers, json.dumps({"emulated": True, "note": EMULATED}))

    def write(self, f, line):
        with self.lock:
            f.write(line + "\n")
            f.flush()

    def say(self, line):
        """A line of the summary."""
        self.write(self.summary, line)
        if self.log is not self.summary:
            self.write(self.log, line)
        print(line, flush=True)

    def number(self, part, found):
        self.write(self.numbers, json.dumps({"part": part} | ({"emulated": True} if self.emulated else {}) | found))


class Heard:
    """What a part says, line by line."""

    def __init__(self, files, part):
        self.files, self.part, self.last, self.bad = files, part, "", ""
        self.ok = self.not_ok = self.skipped = self.rows = 0

    def listen(self, stream):
        for line in stream:
            line = line.rstrip("\n")
            if line.startswith("{"):
                try:
                    row = json.loads(line)
                    self.files.number(self.part, row)
                    self.rows += 1
                    self.bad = self.bad or str(row.get("failed", ""))
                    continue
                except ValueError:
                    pass
            if line.startswith("ok "):
                self.ok += 1
                self.skipped += "# SKIP" in line
            if line.startswith("not ok "):
                self.not_ok += 1
                self.bad = self.bad or line
            elif line.strip():
                self.last = line.strip()
            self.files.write(self.files.log, f"    [{self.part}] {line}")

    def counts(self):
        found = [f"{self.rows} rows"] if self.rows else []
        if self.ok or self.not_ok:
            found.append(f"{self.ok - self.skipped} ok, {self.not_ok} not ok, {self.skipped} not asked for or absent")
        return "".join(f", {x}" for x in found)


STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def begin_child():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)          # PR_SET_PDEATHSIG
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


class Day:
    def __init__(self, a, files, end):
        self.a, self.files, self.end, self.child = a, files, end, None
        self.bad = 0
        self.starting = threading.Lock()

    def started(self, command, env):
        """A child in a group of its own, which whoever holds `starting` knows."""
        with self.starting:
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True, errors="replace", bufsize=1,
                                          start_new_session=True, env=os.environ | env, cwd=self.a.work,
                                          preexec_fn=begin_child)

    def run(self, part):
        left = self.end - time.time()
        if left < part.least:
            self.files.say(f"== {part.name}: left out: the step's time was nearly over ({max(left, 0):.0f} s left)")
            return
        limit, began, heard = min(part.limit, left), time.time(), Heard(self.files, part.name)
        self.files.write(self.files.log, f"-- {part.name} begins, at most {limit:.0f} s")
        try:
            self.started(part.command, part.env)
        except OSError as e:
            self.files.say(f"== {part.name}: left out: {e}")
            return
        ears = [threading.Thread(target=heard.listen, args=(s,), daemon=True)
                for s in (self.child.stdout, self.child.stderr)]
        for ear in ears:
            ear.start()
        try:
            status = self.child.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
            self.stop_group()
            self.child.wait()
        for ear in ears:
            ear.join(5)                                 # a grandchild may still hold the pipe
        self.stop_group()
        self.child = None                               # its number may soon be another's
        self.tell(part, status, time.time() - began, heard)

    def stop_group(self):
        child = self.child
        try:
            if child:
                os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def tell(self, part, status, seconds, heard):
        took = f"after {seconds:.1f} s{heard.counts()}"
        why = f": {' '.join((heard.bad or heard.last).split())}"
        if status is None:
            said = f"STOPPED {took}: its time was over{'; it said last' + why if heard.last else ''}"
        elif status == 3:
            said = f"left out {took}{why}"
        elif status or heard.not_ok:
            said = f"FAILED with status {status} {took}{why}"
        else:
            said = f"done {took}"
        self.bad += said[0].isupper()
        self.files.say(f"== {part.name}: {said}")
        self.files.number(part.name, {"ended": said.split(" ")[0].lower(), "status": status, "seconds": round(seconds, 2),
                                      "ok": heard.ok - heard.skipped, "not_ok": heard.not_ok})


def work_folder(emulated):
    """A folder of our own where weights and stores find room, and whether it must go."""
    chosen = os.environ.get("GPU_DAY_WORK")
    if chosen:
        os.makedirs(chosen, exist_ok=True)
        return os.path.abspath(chosen), False
    places = [p for p in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(p) and os.access(p, os.W_OK)]
    room = 0 if emulated else ROOM
    best = next((p for p in places if shutil.disk_usage(p).free > room), None)
    best = best or max(places, key=lambda p: shutil.disk_usage(p).free)
    return tempfile.mkdtemp(prefix="shears-day-", dir=best), True


def removed(folder):
    """Removes a folder in which killed processes may still end their last write."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.1)
    print(f"gpu_day.py: {folder} could not be removed", file=sys.stderr)


def launcher(path, program, libraries):
    """A script that runs a program of ours with the libraries that it needs, which PyTorch must not see."""
    with open(path, "w") as f:
        f.write(f'#!/bin/sh\nLD_LIBRARY_PATH="{":".join(libraries)}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
                f'export LD_LIBRARY_PATH\nexec "{program}" "$@"\n')
    os.chmod(path, 0o755)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("step", type=int, choices=(1, 2, 3))
    p.add_argument("--top", required=True, help="folder of the sources, or of the unpacked pack")
    p.add_argument("--build", required=True, help="folder of the programs")
    a = p.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)     # of all threads: wait_for_interrupt takes them
    a.emulated = os.environ.get("SHEARS_GPU", "") == "emulated"
    seconds = float(os.environ.get("GPU_DAY_SECONDS", 540))
    end = float(os.environ.get("GPU_DAY_BEGAN", time.time())) + seconds
    a.out = os.environ.get("OUT", ".")
    files = Files(a.out, a.step, a.emulated)
    a.work, ours = work_folder(a.emulated)
    day = Day(a, files, end)

    def wait_for_interrupt():
        number = signal.sigwait(STOPS)
        files.say(f"== interrupted by {signal.Signals(number).name}: what came before this line is all there is")
        with day.starting:
            day.stop_group()
            if ours:
                removed(a.work)
            os._exit(128 + number)

    # A thread of its own, as a handler could not wait for what the main thread is about to write or to start.
    threading.Thread(target=wait_for_interrupt, daemon=True).start()
    a.libraries, why = gpu_libraries.find(a.build)
    a.bin = f"{a.work}/bin"
    os.makedirs(a.bin, exist_ok=True)
    for name in gpu_parts.PROGRAMS:
        launcher(f"{a.bin}/{os.path.basename(name)}", f"{a.build}/{name}", a.libraries)
    files.say(f"step {a.step} of 3, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, at most {seconds:.0f} s in all, "
              f"work in {os.path.dirname(a.work) if ours else a.work}; {why}")
    for part in gpu_parts.of_step(a):
        day.run(part)
    files.say(f"== step {a.step} ended after {time.time() - (end - seconds):.0f} s, "
              f"{day.bad} part{'' if day.bad == 1 else 's'} failed or stopped")
    if ours:
        removed(a.work)
    sys.exit(1 if day.bad else 0)


if __name__ == "__main__":
    main()
