#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes checkpoints for the tests of the command line.
    checkpoint.py random FOLDER KEY=NUMBER...    a config.json of the OPT family, no weights
    checkpoint.py holes FOLDER KEY=NUMBER...     the same with f16 weights that are all 0 and take no disk
                                                 (f32_layers=N: the first N layers have f32)
    checkpoint.py damage FOLDER FROM HOW [NAME]  a copy of FROM with one fault in model.safetensors"""
import json
import math
import os
import shutil
import struct
import sys


def random_model(folder, settings):
    config = {"model_type": "opt", "architectures": ["OPTForCausalLM"], "num_hidden_layers": 2,
              "hidden_size": 32, "num_attention_heads": 4, "ffn_dim": 64, "vocab_size": 561,
              "max_position_embeddings": 256, "word_embed_proj_dim": 32, "do_layer_norm_before": True,
              "activation_function": "relu"}
    config.update((key, int(value)) for key, value in (s.split("=") for s in settings))
    if not any(s.startswith("word_embed") for s in settings):
        config["word_embed_proj_dim"] = config["hidden_size"]
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/config.json", "w") as f:
        json.dump(config, f)


def holes(folder, settings):
    random_model(folder, settings)
    with open(f"{folder}/config.json") as f:
        c = json.load(f)
    width, ffn = c["hidden_size"], c["ffn_dim"]
    shapes = {"embed_tokens.weight": [c["vocab_size"], width],
              "embed_positions.weight": [c["max_position_embeddings"] + 2, width]}
    norms = ["final_layer_norm"]
    for i in range(c["num_hidden_layers"]):
        layer = f"layers.{i}"
        norms += [f"{layer}.self_attn_layer_norm", f"{layer}.final_layer_norm"]
        for name, rows, cols in ([f"self_attn.{p}_proj", width, width] for p in ("q", "k", "v", "out")):
            shapes |= {f"{layer}.{name}.weight": [rows, cols], f"{layer}.{name}.bias": [rows]}
        for name, rows, cols in ("fc1", ffn, width), ("fc2", width, ffn):
            shapes |= {f"{layer}.{name}.weight": [rows, cols], f"{layer}.{name}.bias": [rows]}
    for name in norms:
        shapes |= {f"{name}.weight": [width], f"{name}.bias": [width]}
    header, end = {}, 0
    wide = tuple(f"layers.{i}." for i in range(c.get("f32_layers", 0)))
    for name, shape in shapes.items():
        is_wide = name.startswith(wide) if wide else False
        begin, end = end, end + (4 if is_wide else 2) * math.prod(shape)
        header[f"model.decoder.{name}"] = {"dtype": "F32" if is_wide else "F16", "shape": shape, "data_offsets": [begin, end]}
    path = f"{folder}/model.safetensors"
    write(path, header, b"")
    os.truncate(path, os.path.getsize(path) + end)


def read(path):
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(n)), bytearray(f.read())


def write(path, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def damage(folder, source, how, name):
    os.mkdir(folder)
    for file in "config.json", "model.safetensors":             # without the source's modes: it may be read-only
        shutil.copyfile(f"{source}/{file}", f"{folder}/{file}")
    path = f"{folder}/model.safetensors"
    header, data = read(path)
    if how == "cut":                                    # in the middle of the data
        os.truncate(path, os.path.getsize(path) - 1000)
        return
    if how == "cut-header":
        os.truncate(path, 100)
        return
    if how == "long-header":                            # a length past the end
        with open(path, "r+b") as f:
            f.write(struct.pack("<Q", os.path.getsize(path) + 1))
        return
    facts = header[name]
    begin, end = facts["data_offsets"]
    if how == "overlap":
        facts["data_offsets"] = [begin - 4, end - 4]
    elif how == "range":
        facts["data_offsets"] = [len(data), len(data) + end - begin]
    elif how == "shape":                                # as many numbers, turned
        facts["shape"] = facts["shape"][::-1]
    elif how == "missing":                              # by another name, so that no hole is left
        header["other." + name] = header.pop(name)
    elif how == "nan":                                  # the tensor's last number
        data[end - 4:end] = struct.pack("<f", float("nan"))
    elif how == "huge":                                 # the same: finite, but what is made of it is not
        data[end - 4:end] = struct.pack("<f", 3.4e38)
    else:
        sys.exit(f"no fault is called {how}")
    write(path, header, data)


if __name__ == "__main__":
    if sys.argv[1] == "random":
        random_model(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "holes":
        holes(sys.argv[2], sys.argv[3:])
    else:
        damage(*sys.argv[2:5], sys.argv[5] if len(sys.argv) > 5 else None)
