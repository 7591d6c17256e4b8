# SPDX-License-Identifier: Apache-2.0
"""What each step of a day at a GPU runs, the most important first. See gpu_day.py."""
import os
import shutil
import subprocess
import sys
from typing import NamedTuple

# make check-gpu's programs (tests/local.mk), what takes least first; without test_few, which tries the CPU
# alone, and test_waits, which needs the emulated device.
TESTS = ("test_backend", "test_positions", "test_forward", "test_weight_bits", "test_linear", "test_packed_module",
         "test_rows", "test_session_families", "test_families", "test_slots", "test_record", "test_slots_block",
         "test_attend", "test_quant", "test_modern", "test_session", "test_prompt")
SMALLEST = TESTS[:4]                                    # that compute-sanitizer looks at
LONG_EMULATED = ("test_session", "test_prompt")         # two minutes there, and make check runs them
PROGRAMS = ("shears", "bench/engine_gpu", "bench/slots_speed", "bench/kernels_speed",
            *(f"tests/unit/{name}" for name in TESTS))
BOARDS = {"H200": "H200-SXM", "H100": "H100-SXM", "A100": "A100-SXM-80GB"}      # names of shears info gpus


class Part(NamedTuple):
    name: str
    command: list
    limit: float                                        # seconds that it may take
    least: float = 5                                    # seconds below which it is not begun
    env: dict = {}


def python(a, program, *options):
    return [sys.executable, f"{a.top}/bench/{program}", *map(str, options)]


def module_env(a):
    """Where the program and the tests find the module."""
    folder = f"{a.build}/tests/emu/modules" if a.emulated else f"{a.build}/kernels"
    found = {"SH_MODULE_DIR": folder, "SH_TEST_MODULE": f"{folder}/cuda.so", "SH_TEST_ONLY": "(module)",
             "SH_TOP": a.top, "SH_GOLDEN": f"{a.top}/tests/golden", "SHEARS": f"{a.bin}/shears"}
    return found | ({"SH_EMU_STREAMS": "others"} if a.emulated else {})


def board():
    """capacity's name of the GPU that is here."""
    try:
        said = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    return next((name for chip, name in BOARDS.items() if chip in said), "H200-SXM")


def left_out(name, why):
    return Part(name, ["/bin/sh", "-c", f'echo "{why}" >&2; exit 3'], 10)


def contract_tests(a, env):
    for name in TESTS:
        if a.emulated and name in LONG_EMULATED:
            yield left_out(name, "the emulated device takes two minutes for it; make check runs it")
        elif os.path.exists(f"{a.build}/tests/unit/{name}"):
            # The whole size of the shapes, except where each thread of a kernel is emulated.
            yield Part(name, [f"{a.bin}/{name}"], 60, env=env if a.emulated else env | {"SH_TEST_FULL": "1"})
        else:
            yield left_out(name, f"tests/unit/{name} has not been built")


# The tool, the program, what tells whose a finding is, and a log. What is cuBLAS's or the runtime's is no failure; 3: the
# machine refuses the tool.
CHECKED = """"$1" --tool memcheck --error-exitcode 9 "$2" >"$4" 2>&1
status=$?
cat "$4"
awk -f "$3" "$4"
case $? in 0) [ $status = 9 ] && exit 0 ;; 3) exit 3 ;; esac
exit $status"""


def memcheck(a, env):
    """Of the smallest tests."""
    tool = shutil.which("compute-sanitizer") or next(
        (p for p in ("/usr/local/cuda/bin/compute-sanitizer",) if os.path.exists(p)), None)
    if a.emulated or not tool:
        yield left_out("memcheck", "the emulated device has no compute-sanitizer; it checks every access itself"
                       if a.emulated else "compute-sanitizer is not here")
        return
    for name in SMALLEST:
        yield Part(f"memcheck {name}", ["/bin/sh", "-c", CHECKED, "sh", tool, f"{a.bin}/{name}",
                                        f"{a.top}/tests/gpu_findings.awk", f"{a.work}/memcheck-{name}.log"], 60, least=15,
                   env=env)


def step_1(a):
    env, small = module_env(a), a.emulated
    yield Part("environment", python(a, "gpu_environment.py", a.work), 60)
    yield Part("backends", [f"{a.bin}/shears", "info", "backends"], 60, env=env)
    yield from contract_tests(a, env)
    sizes = ["8e5", "1", "64"] if small else ["16e9", "20"]
    yield Part("slots_speed", [f"{a.bin}/slots_speed", "cuda", *sizes], 90, env=env)
    sizes = ["64", "1", "512"] if small else ["2048", "5"]
    yield Part("kernels_speed", [f"{a.bin}/kernels_speed", "cuda", *sizes], 90, env=env)
    yield Part("torch_speed", python(a, "torch_speed.py"), 90)
    yield from memcheck(a, env)


def tracing(a, env, name, only, sequences, limit, *options):
    shape, length = ("small-opt", 48) if a.emulated else ("opt-6.7b", 2048)
    command = python(a, "trace_speed.py", "--shears", f"{a.bin}/shears", "--work", a.work, "--backend", "cuda",
                     "--shape", shape, "--dtype", "f16", "--length", length, "--sequences", 2 if a.emulated else sequences,
                     "--repeat", 1, "--lines", "--only", only, *options)
    return Part(name, command, limit, least=20, env=env)


def step_2(a):
    env = module_env(a)
    shape = "small-opt" if a.emulated else "opt-6.7b"
    yield Part("weights", python(a, "random_model.py", f"{a.work}/{shape}", shape), 120)
    for level in ("one layer only", "full log8", "summary", "sparse"):
        yield tracing(a, env, f"trace, {level}", level, 4, 75)
    yield tracing(a, env, "trace, PyTorch", "pytorch", 4, 120, "--pytorch-sequences", 1)
    yield Part("trace, CPU against CUDA", python(a, "trace_match.py", "--shears", f"{a.bin}/shears", "--checkpoints",
                                                 f"{a.top}/tests/golden/checkpoints", "--work", a.work), 120, env=env)
    for level in ("one layer only", "summary"):         # so many that reading the weights no longer counts
        yield tracing(a, env, f"trace of 32, {level}", level, 32, 75)
    disk = os.environ.get("TMPDIR", "/tmp")
    yield tracing(a, env, "trace, full log8 on disk", "full log8", 4, 75, "--store", disk)
    yield tracing(a, env, "limits", "limits", 4, 60, "--store", disk)
    yield tracing(a, env, "trace, full f16", "full f16", 4, 75)


def decoding(a, env, name, limit, *options):
    shape, context, steps = ("small", 64, 8) if a.emulated else ("llama-7b", 2048, 64)
    command = python(a, "engine_gpu.py", "--driver", f"{a.bin}/engine_gpu", "--shears", f"{a.bin}/shears", "--work",
                     a.work, "--shape", shape, "--context", context, "--steps", steps, "--gpu", board(), "--lines",
                     *options)
    return Part(name, command, limit, least=20, env=env)


def step_3(a):
    env = module_env(a)
    shape = "small" if a.emulated else "llama-7b"
    batches = (1, 2, 3, 5) if a.emulated else (1, 16, 64, 256)
    yield Part("weights", python(a, "random_model.py", f"{a.work}/{shape}", shape), 120)
    for batch in batches:
        yield decoding(a, env, f"decode, batch {batch}", 90, "--memory", 0, "--batch", batch, "--cache", "full16",
                       "fifth16", "fifth4", "whole4", "--without-pytorch")
    yield decoding(a, env, "decode, PyTorch", 120, "--memory", 0, "--batch", *batches, "--only", "pytorch")
    memory = 65e6 if a.emulated else 40e9
    yield decoding(a, env, "largest batches", 120, "--memory", memory, "--without-pytorch")
    yield decoding(a, env, "largest batch, PyTorch", 120, "--memory", memory, "--only", "pytorch")


def of_step(a):
    return {1: step_1, 2: step_2, 3: step_3}[a.step](a)
