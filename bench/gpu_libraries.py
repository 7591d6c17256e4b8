# SPDX-License-Identifier: Apache-2.0
"""Where the libraries are that kernels/cuda.so needs: in PyTorch's wheels, or in an installed toolkit."""
import glob
import os
import site
import sys

NEEDED = "libcublas.so.13"
WHEELS = ("nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib")
NEXT_TO = ("libcublasLt.so.13",)                         # what cuBLAS itself loads
TOOLKITS = ("/usr/local/cuda/lib64", "/usr/local/cuda-13*/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
            "/usr/lib/x86_64-linux-gnu")


def site_folders():
    found = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    return found + [p for p in site.getsitepackages() if p not in found]


def candidates():
    for base in site_folders():
        for name in WHEELS:
            yield f"{base}/{name}"
    for pattern in TOOLKITS:
        yield from sorted(glob.glob(pattern), reverse=True)


def find(build):
    """The folders that go into LD_LIBRARY_PATH of our programs, and a sentence that says where cuBLAS is."""
    packed = [f"{build}/lib"] if os.path.isdir(f"{build}/lib") else []
    for folder in candidates():
        if os.path.exists(f"{folder}/{NEEDED}"):
            folders = [folder] + [other for other in candidates() if other != folder and
                                  any(os.path.exists(f"{other}/{name}") for name in NEXT_TO)][:1]
            return packed + folders, f"{NEEDED} of {folder}"
    return packed, f"{NEEDED} was not found in PyTorch's wheels nor in a toolkit"


if __name__ == "__main__":
    print(":".join(find(sys.argv[1] if len(sys.argv) > 1 else ".")[0]))
