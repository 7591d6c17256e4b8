#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/torch: small files of torch.save in every form that shears reads, expected.tsv with what
PyTorch reads from them (file, name, dtype, shape, CRC-32 of the row-major bytes), and files that an
attacker would make; fixtures.tsv with the same facts about the folders of published layout. Needs torch.
Usage: torch_files.py tests/golden/torch FIXTURES"""
import collections
import glob
import os
import sys
import warnings
import zipfile
import zlib

import torch

DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64",
          torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
          torch.bool: "BOOL"}


def tensors():
    """One of each type, and every way to lie in a storage."""
    generator = torch.Generator().manual_seed(7)
    base = torch.randn(6, 4, generator=generator)
    cube = torch.randn(2, 3, 4, generator=generator)
    some = {
        "embed.weight": base, "head.weight": base,                          # tied
        "rows": base[2:5], "cell": base[3, 1], "transposed": base.t(), "column": base[:, 1], "every_second": base[::2],
        "cube.permuted": cube.permute(2, 0, 1), "one_row": base[1:2], "empty": torch.empty(0, 4),
        "number": torch.tensor(2.5), "half": base.half(), "brain": base.bfloat16(), "brain.t": base.bfloat16().t(),
    }
    for dtype in (torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        some["buffer." + DTYPES[dtype].lower()] = torch.tensor([0, 1, 3, 127]).to(dtype)
    return some


def module():
    """As a user saves one: an ordered dictionary whose attribute _metadata holds the modules' versions."""
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2)).state_dict()


def rows(file, state):
    for name, t in state.items():
        if isinstance(t, torch.Tensor):
            data = bytes(t.detach().contiguous().reshape(-1).view(torch.uint8).tolist()) if t.numel() else b""
            yield file, name, DTYPES[t.dtype], "x".join(map(str, t.shape)) or "-", zlib.crc32(data)


class Command:
    def __reduce__(self):
        return os.system, ("touch /tmp/shears-was-here",)


def attacks(top):
    torch.save({"weight": torch.ones(2), "x": Command()}, os.path.join(top, "bad_system.bin"))
    torch.save(torch.nn.Linear(2, 2), os.path.join(top, "bad_module.bin"))
    torch.save([torch.ones(2)], os.path.join(top, "bad_list.bin"))
    plain = os.path.join(top, "zip.bin")
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(os.path.join(top, "bad_deflated.bin"), "w") as new:
        for entry in old.infolist():
            packed = zipfile.ZIP_DEFLATED if entry.filename.endswith("data.pkl") else zipfile.ZIP_STORED
            new.writestr(zipfile.ZipInfo(entry.filename), old.read(entry), packed)


def widen(path, wide):
    """The same archive with zip64 records throughout, as those of more than 4 GiB have."""
    zipfile.ZIP64_LIMIT = zipfile.ZIP_FILECOUNT_LIMIT = -1
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(wide, "w") as new:
        for entry in old.infolist():
            new.writestr(zipfile.ZipInfo(entry.filename), old.read(entry))


def published(fixtures, out):
    for path in sorted(glob.glob(os.path.join(fixtures, "*", "pytorch_model*.bin"))):
        for row in rows(os.path.basename(os.path.dirname(path)), torch.load(path, weights_only=True)):
            print(*row, sep="\t", file=out)


def main():
    top = sys.argv[1]
    with open(os.path.join(top, "fixtures.tsv"), "w") as out:
        published(sys.argv[2], out)
    parameters = {k: torch.nn.Parameter(v) for k, v in list(tensors().items())[:3]}
    mixed = collections.OrderedDict(tensors(), epoch=3, rate=0.5, note="ü", more={"list": [1, None, True], "big": 1 << 70,
                                                                                  "negative": [-1, -300, -(1 << 40)]})
    files = {
        "zip.bin": (tensors(), {}), "stacked.bin": (tensors(), {"_use_new_zipfile_serialization": False}),
        "module.bin": (module(), {}), "module_stacked.bin": (module(), {"_use_new_zipfile_serialization": False}),
        "parameters.bin": (parameters, {}), "mixed.bin": (mixed, {}), "protocol4.bin": (mixed, {"pickle_protocol": 4}),
        "protocol4_stacked.bin": (mixed, {"pickle_protocol": 4, "_use_new_zipfile_serialization": False}),
    }
    torch.save(tensors(), os.path.join(top, "zip.bin"))
    attacks(top)
    with open(os.path.join(top, "expected.tsv"), "w") as out:
        for name, (state, how) in files.items():
            path = os.path.join(top, name)
            torch.save(state, path, **how)
            back = torch.load(path, weights_only=False)
            for row in rows(name, back):
                print(*row, sep="\t", file=out)
        widen(os.path.join(top, "zip.bin"), os.path.join(top, "zip64.bin"))
        for row in rows("zip64.bin", torch.load(os.path.join(top, "zip64.bin"), weights_only=False)):
            print(*row, sep="\t", file=out)


warnings.simplefilter("ignore")
main()
