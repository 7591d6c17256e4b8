# SPDX-License-Identifier: Apache-2.0
"""GGUF files of a LLaMA-shaped hub folder, for other programs to read the same weights: in f32, and in llama.cpp's own
formats, which its own quantiser makes of that file. Needs gguf, safetensors, torch, llama-cpp-python.

    llama_gguf.py FOLDER FORMAT FILE        llama_gguf.py model q4_k_m model-q4_k_m.gguf
"""
import ctypes
import json
import os
import sys

import numpy as np

# As llama_ftype in llama.h.
FORMATS = {"f32": 0, "f16": 1, "bf16": 32, "q4_0": 2, "q4_1": 3, "q5_0": 8, "q5_1": 9, "q8_0": 7, "q2_k": 10,
           "q3_k_m": 12, "q4_k_m": 15, "q5_k_m": 17, "q6_k": 18, "iq4_nl": 25, "iq4_xs": 30, "mxfp4": 38}
LAYER = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name):
    stem = name.removesuffix(".weight")
    if stem in TOP:
        return TOP[stem] + ".weight"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{LAYER[rest]}.weight"


def turned(x, heads, back=False):
    """Rows of a query or key matrix as llama.cpp turns neighbouring elements, or as the hub has halves."""
    rows, cols = x.shape
    parts = (rows // heads // 2, 2) if back else (2, rows // heads // 2)
    return np.ascontiguousarray(x.reshape(heads, *parts, cols).swapaxes(1, 2).reshape(rows, cols))


def heads_of(config, name):
    """Of a matrix whose rows are turned, else None."""
    if "q_proj" in name:
        return config["num_attention_heads"]
    return config.get("num_key_value_heads", config["num_attention_heads"]) if "k_proj" in name else None


def config_of(folder):
    with open(os.path.join(folder, "config.json")) as f:
        return json.load(f)


def write_f32(folder, path):
    import gguf
    import torch
    from safetensors.torch import load_file

    c = config_of(folder)
    heads = c["num_attention_heads"]
    w = gguf.GGUFWriter(path, "llama")
    w.add_block_count(c["num_hidden_layers"])
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(heads)
    w.add_head_count_kv(c.get("num_key_value_heads", heads))
    w.add_rope_dimension_count(c["hidden_size"] // heads)
    w.add_rope_freq_base(float(c.get("rope_theta") or c.get("rope_parameters", {}).get("rope_theta") or 10000))
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_vocab_size(c["vocab_size"])
    w.add_tokenizer_model("no_vocab")
    for name, t in load_file(os.path.join(folder, "model.safetensors")).items():
        x, n = t.to(torch.float32).numpy(), heads_of(c, name)
        w.add_tensor(gguf_name(name), turned(x, n) if n else x)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write(folder, kind, path):
    """Tensors whose width does not suit the format get another one from the quantiser, as llama.cpp's users get them."""
    import llama_cpp

    plain = os.path.join(os.path.dirname(path), "model-f32.gguf")
    if not os.path.exists(plain):
        write_f32(folder, plain)
    if kind != "f32":
        llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
        p = llama_cpp.llama_model_quantize_default_params()
        p.ftype, p.nthread = FORMATS[kind], 1
        if llama_cpp.llama_model_quantize(plain.encode(), path.encode(), ctypes.byref(p)):
            raise SystemExit(f"llama.cpp's quantiser refuses {kind}")


def quiet_of():
    import llama_cpp

    return llama_cpp.llama_log_callback(lambda *_: None)


try:
    quiet = quiet_of()
except ImportError:                     # said where it is needed
    quiet = None

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[2] not in FORMATS:
        sys.exit(__doc__)
    write(*sys.argv[1:])
