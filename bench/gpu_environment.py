# SPDX-License-Identifier: Apache-2.0
"""What machine this is: the GPU and its driver, the processor, memory, disks, and the programs that are there. One line
of JSON, then the driver's own words."""
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

FIELDS = ("name", "driver_version", "memory.total", "memory.used", "pcie.link.gen.current", "pcie.link.gen.max",
          "pcie.link.width.current", "pcie.link.width.max", "clocks.sm", "clocks.mem", "clocks.max.sm",
          "clocks.max.mem", "power.limit", "temperature.gpu", "compute_mode", "compute_cap", "ecc.mode.current",
          "persistence_mode", "mig.mode.current")
PACKAGES = ("torch", "transformers", "numpy", "safetensors", "triton", "nvidia-cublas", "nvidia-cuda-runtime")


def said(*command):
    """What a program prints; "" where it is not there or does not come back."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return (done.stdout or done.stderr).strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def gpu():
    """One question a field: a driver that does not know one of them would answer none."""
    found = {}
    for field in FIELDS:
        answer = said("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader")
        if answer and "not a valid field" not in answer.lower():
            found[field] = answer.split("\n")[0]
    return found or "nvidia-smi is not here or says nothing"


def lines_of(path, *begins):
    try:
        return [line.strip() for line in open(path) if line.startswith(begins)]
    except OSError:
        return []


def cpu():
    model = lines_of("/proc/cpuinfo", "model name")
    flags = set(" ".join(lines_of("/proc/cpuinfo", "flags")[:1]).split())
    return {"model": model[0].split(":")[1].strip() if model else platform.machine(), "cores": os.cpu_count(),
            "usable": len(os.sched_getaffinity(0)),
            "has": sorted(flags & {"avx2", "f16c", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16"})}


def memory():
    return {line.split(":")[0]: 1024 * int(line.split()[1])
            for line in lines_of("/proc/meminfo", "MemTotal", "MemAvailable")}


def room(work):
    """Free and whole bytes of the folders that stores may lie in."""
    folders = {"/dev/shm", tempfile.gettempdir(), os.getcwd(), work, os.environ.get("OUT", ".")}
    return {f: shutil.disk_usage(f)._asdict() for f in sorted(folders) if os.path.isdir(f)}


def versions():
    found = {"python": platform.python_version(), "libc": " ".join(platform.libc_ver()), "kernel": platform.release()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    found["nvcc"] = said("nvcc", "--version").split("\n")[-1] or None
    found["compute-sanitizer"] = said("compute-sanitizer", "--version").split("\n")[-1] or None
    return found


def main():
    work = sys.argv[1] if len(sys.argv) > 1 else "."
    print(json.dumps({"gpu": gpu(), "cpu": cpu(), "memory_bytes": memory(), "room": room(work), "versions": versions(),
                      "environment": {k: v for k, v in os.environ.items() if k.startswith(("CUDA_", "NVIDIA_", "CUBLAS"))}}),
          flush=True)
    print(said("nvidia-smi") or "nvidia-smi: not here", flush=True)
    print("\n".join(said("nvidia-smi", "-q", "-d", "CLOCK,POWER,PERFORMANCE").split("\n")[:80]), flush=True)


main()
