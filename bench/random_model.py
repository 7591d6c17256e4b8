# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a real model's shape with random f16 weights, written as fast as the disk takes them: no
library is needed. The numbers are one block of 2^22, about normal with deviation 0.02, from another place on
for each tensor; norms have 1 for a weight, and biases are 0."""
import json
import mmap
import multiprocessing
import os
import random
import statistics
import struct
import sys
import time


def opt(layers, width, heads):
    return {"model_type": "opt", "num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads,
            "ffn_dim": 4 * width, "vocab_size": 50272, "max_position_embeddings": 2048}


SHAPES = {
    "opt-125m": opt(12, 768, 12),
    "opt-1.3b": opt(24, 2048, 32),
    "opt-6.7b": opt(32, 4096, 32),
    "opt-30b": opt(48, 7168, 56),
    "llama-7b": {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
                 "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 32000,
                 "max_position_embeddings": 2048},
    "llama-134m": {"model_type": "llama", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
                   "num_key_value_heads": 12, "intermediate_size": 2048, "vocab_size": 32000,
                   "max_position_embeddings": 8192},
    "small": {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
              "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 128, "max_position_embeddings": 2048},
    "small-opt": {"model_type": "opt", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
                  "ffn_dim": 96, "vocab_size": 128, "max_position_embeddings": 2048},
}
OPT = {"architectures": ["OPTForCausalLM"], "activation_function": "relu", "do_layer_norm_before": True,
       "dropout": 0.0, "attention_dropout": 0.0, "_remove_final_layer_norm": False, "tie_word_embeddings": True}
LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
         "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False}
BLOCK = 1 << 22


def config_of(shape):
    """config.json, as a dictionary."""
    config = SHAPES[shape] | {"dtype": "float16", "torch_dtype": "float16", "bos_token_id": 1, "eos_token_id": 2,
                              "pad_token_id": 1}
    if config["model_type"] == "opt":
        return config | OPT | {"word_embed_proj_dim": config["hidden_size"]}
    return config | LLAMA


def opt_tensors(c):
    width, ffn = c["hidden_size"], c["ffn_dim"]
    yield "model.decoder.embed_tokens.weight", (c["vocab_size"], width)
    yield "model.decoder.embed_positions.weight", (c["max_position_embeddings"] + 2, width)
    layer = [("self_attn." + x, (width, width)) for x in ("k_proj", "v_proj", "q_proj", "out_proj")]
    layer += [("fc1", (ffn, width)), ("fc2", (width, ffn)), ("self_attn_layer_norm", (width,)),
              ("final_layer_norm", (width,))]
    for i in range(c["num_hidden_layers"]):
        for name, shape in layer:
            yield f"model.decoder.layers.{i}.{name}.weight", shape
            yield f"model.decoder.layers.{i}.{name}.bias", shape[:1]
    yield "model.decoder.final_layer_norm.weight", (width,)
    yield "model.decoder.final_layer_norm.bias", (width,)


def llama_tensors(c):
    width, ffn = c["hidden_size"], c["intermediate_size"]
    kv = width // c["num_attention_heads"] * c["num_key_value_heads"]
    yield "model.embed_tokens.weight", (c["vocab_size"], width)
    layer = {"input_layernorm": (width,), "self_attn.q_proj": (width, width), "self_attn.k_proj": (kv, width),
             "self_attn.v_proj": (kv, width), "self_attn.o_proj": (width, width), "post_attention_layernorm": (width,),
             "mlp.gate_proj": (ffn, width), "mlp.up_proj": (ffn, width), "mlp.down_proj": (width, ffn)}
    for i in range(c["num_hidden_layers"]):
        for name, shape in layer.items():
            yield f"model.layers.{i}.{name}.weight", shape
    yield "model.norm.weight", (width,)
    yield "lm_head.weight", (c["vocab_size"], width)


def random_block(rng):
    """BLOCK f16 numbers: the upper byte is a normal number's, the lower one any."""
    normal = statistics.NormalDist(0, 0.02)
    upper = bytes(struct.pack("<e", normal.inv_cdf((k + 0.5) / 256))[1] for k in range(256))
    block = bytearray(2 * BLOCK)
    block[0::2] = rng.randbytes(BLOCK)
    block[1::2] = rng.randbytes(BLOCK).translate(upper)
    return bytes(block)


def spread(rng, tensors):
    """For each tensor where in the block its numbers begin."""
    return [0 if name.endswith(".bias") or "norm" in name else 2 * rng.randrange(BLOCK) for name, _ in tensors]


def write_tensors(path, pieces, block):
    """pieces: (name, first byte, end, where in the block its numbers begin)."""
    zeros, ones = bytes(1 << 16), struct.pack("<e", 1.0) * (1 << 15)
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as to:
        for name, begin, end, at in pieces:
            source = zeros if name.endswith(".bias") else ones if "norm" in name else block
            while begin < end:
                n = min(end - begin, len(source) - at)
                to[begin:begin + n] = source[at:at + n]
                begin, at = begin + n, 0


def fill(path, pieces, block):
    """Several processes, because the system hands out pages of a file in memory at 0.3 to 0.7
    GB/s a core (seen on a virtual machine)."""
    workers = min(8, os.cpu_count() or 1)
    pieces.sort(key=lambda piece: piece[1] - piece[2])
    running = [multiprocessing.get_context("fork").Process(target=write_tensors, args=(path, pieces[i::workers], block))
               for i in range(workers)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    if any(one.exitcode for one in running):
        raise OSError(f"{path}: could not be written whole")


def make(folder, shape, holes=False):
    """The checkpoint, unless it is there already. holes: all weights are 0, and the file takes no disk."""
    path = os.path.join(folder, "model.safetensors")
    if os.path.exists(os.path.join(folder, "config.json")) and os.path.exists(path):
        return
    os.makedirs(folder, exist_ok=True)
    config, rng = config_of(shape), random.Random(0)
    header, end, block = {"__metadata__": {"format": "pt"}}, 0, random_block(rng)
    tensors = list((opt_tensors if config["model_type"] == "opt" else llama_tensors)(config))
    for name, shape_of in tensors:
        begin, end = end, end + 2 * shape_of[0] * (shape_of[1] if len(shape_of) > 1 else 1)
        header[name] = {"dtype": "F16", "shape": shape_of, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    first = 8 + len(text)
    with open(path + ".part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(first + end)
    if not holes:
        ends = [header[name]["data_offsets"] for name, _ in tensors]
        fill(path + ".part", [(name, first + begin, first + end, at) for (name, _), (begin, end), at in
                              zip(tensors, ends, spread(rng, tensors))], block)
    os.rename(path + ".part", path)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=1)


def weight_bytes(folder):
    return sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder) if f.endswith(".safetensors"))


if __name__ == "__main__":                              # random_model.py FOLDER SHAPE
    begin = time.perf_counter()
    make(sys.argv[1], sys.argv[2])
    took = time.perf_counter() - begin
    print(json.dumps({"shape": sys.argv[2], "weight_bytes": weight_bytes(sys.argv[1]), "seconds": round(took, 2)}))
