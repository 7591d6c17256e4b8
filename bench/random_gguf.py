# SPDX-License-Identifier: Apache-2.0
"""A GGUF file of LLaMA's shape whose matrices are random blocks of one format: any bits are codes, scales are such that
the numbers have a deviation of about 0.02. Needs numpy.

    random_gguf.py FORMAT SHAPE FILE [--holes]      random_gguf.py q4_0 llama-7b /tmp/7b-q4_0.gguf

SHAPE is one of random_model.py's, or LAYERSxWIDTHxHEADSxFFNxVOCAB. With --holes all is 0, and takes no room on disk."""
import os
import pathlib
import struct
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).parent.parent / "tests/oracle"))
from gguf_files import FLOAT, STRING, U32, text, value  # noqa: E402
from random_model import SHAPES  # noqa: E402

# name: number in the file, numbers of a block, its bytes, (place of an f16 scale, its value)...
FORMATS = {
    "f32": (0, 1, 4), "f16": (1, 1, 2), "bf16": (30, 1, 2),
    "q4_0": (2, 32, 18, (0, 4e-3)), "q4_1": (3, 32, 20, (0, 4e-3), (2, -3e-2)), "q5_0": (6, 32, 22, (0, 2e-3)),
    "q5_1": (7, 32, 24, (0, 2e-3), (2, -3e-2)), "q8_0": (8, 32, 34, (0, 2.7e-4)),
    "q2_k": (10, 256, 84, (80, 2.4e-3), (82, 3.6e-3)), "q3_k": (11, 256, 110, (108, 4.7e-4)),
    "q4_k": (12, 256, 144, (0, 1.3e-4), (2, 1e-3)), "q5_k": (13, 256, 176, (0, 7e-5), (2, 1e-3)),
    "q6_k": (14, 256, 210, (208, 1.5e-5)),
    "iq2_xxs": (16, 256, 66, (0, 4e-4)), "iq2_xs": (17, 256, 74, (0, 4e-4)), "iq3_xxs": (18, 256, 98, (0, 2e-4)),
    "iq1_s": (19, 256, 50, (0, 2.5e-3)), "iq4_nl": (20, 32, 18, (0, 3e-4)), "iq3_s": (21, 256, 110, (0, 6e-5)),
    "iq2_s": (22, 256, 82, (0, 4e-4)), "iq4_xs": (23, 256, 136, (0, 2e-5)), "iq1_m": (29, 256, 56),
    "mxfp4": (39, 32, 17), "nvfp4": (40, 64, 36), "tq1_0": (34, 256, 54, (52, 2.4e-2)),
    "tq2_0": (35, 256, 66, (64, 2.4e-2)), "q1_0": (41, 128, 18, (0, 2e-2))}
TILE = 1 << 15                          # blocks that are made; tensors are cut from them, each from another place on


def tile(name):
    """TILE blocks, or as many bytes of plain numbers."""
    g = np.random.default_rng(1)
    number, elements, size, *scales = FORMATS[name]
    if elements == 1:
        x = (g.standard_normal(TILE * 32) * 0.02).astype(np.float32)
        return x.tobytes() if size == 4 else x.astype("<f2").tobytes() if name == "f16" else (x.view("<u4") >> 16).astype(
            "<u2").tobytes()
    b = g.integers(0, 256, (TILE, size), np.uint8)
    for at, scale in scales:
        b[:, at:at + 2] = np.frombuffer(struct.pack("<e", scale), np.uint8)
    if name == "mxfp4":
        b[:, 0] = 118 + b[:, 0] % 4
    if name == "nvfp4":                 # scales of 1 to 8, times the tensor's own
        b[:, :4] = 56 + b[:, :4] % 24
    if name == "iq1_m":                 # the scale lies in the upper bits of four words
        word, = struct.unpack("<H", struct.pack("<e", 2.5e-3))
        for i in range(4):
            b[:, 49 + 2 * i] = (b[:, 49 + 2 * i] & 15) | (word >> 4 * i & 15) << 4
    return b.tobytes()


def tensors(layers, width, heads, kv_heads, ffn, vocab):
    kv = width // heads * kv_heads
    yield "token_embd", (vocab, width)
    for i in range(layers):
        for name, shape in (("attn_norm", (width,)), ("attn_q", (width, width)), ("attn_k", (kv, width)),
                            ("attn_v", (kv, width)), ("attn_output", (width, width)), ("ffn_norm", (width,)),
                            ("ffn_gate", (ffn, width)), ("ffn_up", (ffn, width)), ("ffn_down", (width, ffn))):
            yield f"blk.{i}.{name}", shape
    yield "output_norm", (width,)
    yield "output", (vocab, width)


def shape_of(name):
    if name in SHAPES:
        c = SHAPES[name]
        return [c[k] for k in ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
                               "intermediate_size", "vocab_size", "max_position_embeddings")]
    layers, width, heads, ffn, vocab = map(int, name.split("x"))
    return [layers, width, heads, heads, ffn, vocab, 8192]


def write(kind, shape, path, holes):
    """The file's bytes."""
    *sizes, positions = shape_of(shape)
    layers, width, heads, kv_heads, ffn, vocab = sizes
    number, elements, size, *_ = FORMATS[kind]
    all_tensors = list(tensors(*sizes))
    values = [("general.architecture", STRING, "llama"), ("general.quantization_version", U32, 2),
              ("llama.block_count", U32, layers), ("llama.context_length", U32, positions),
              ("llama.embedding_length", U32, width), ("llama.feed_forward_length", U32, ffn),
              ("llama.attention.head_count", U32, heads), ("llama.attention.head_count_kv", U32, kv_heads),
              ("llama.rope.dimension_count", U32, width // heads), ("llama.vocab_size", U32, vocab),
              ("llama.attention.layer_norm_rms_epsilon", FLOAT, 1e-6), ("tokenizer.ggml.model", STRING, "no_vocab")]
    n_tensors = sum(2 if kind == "nvfp4" and len(dims) == 2 else 1 for name, dims in all_tensors)
    head = b"GGUF" + struct.pack("<IQQ", 3, n_tensors, len(values))
    head += b"".join(text(k) + struct.pack("<I", t) + value(t, v) for k, t, v in values)
    at, places = 0, []
    for name, dims in all_tensors:
        is_norm = len(dims) == 1
        n = 4 * dims[0] if is_norm else dims[0] * dims[1] // elements * size
        head += text(name + ".weight") + struct.pack(f"<I{len(dims)}QIQ", len(dims), *reversed(dims),
                                                     0 if is_norm else number, at)
        places.append((at, n, is_norm))
        at += -(-n // 32) * 32
    for name, dims in [t for t in all_tensors if kind == "nvfp4" and len(t[1]) == 2]:
        head += text(name + ".scale") + struct.pack("<IQIQ", 1, 1, 0, at)
        places.append((at, 4, True))
        at += 32
    head += bytes(-len(head) % 32)
    block = b"" if holes else tile(kind)
    with open(path, "wb") as f:
        f.write(head)
        for i, (begin, n, is_norm) in enumerate(places if not holes else []):
            f.seek(len(head) + begin)
            if is_norm:
                f.write(struct.pack("<f", 1.0 if n > 4 else 2e-3) * (n // 4))
            else:
                first = 997 * i % TILE * size % len(block)
                for done in range(-first, n, len(block)):
                    f.write(block[-done if done < 0 else 0:n - done])
        f.truncate(len(head) + at)
    return len(head) + at


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5) or sys.argv[1] not in FORMATS:
        sys.exit(__doc__)
    print(write(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:] == ["--holes"]), "bytes")
