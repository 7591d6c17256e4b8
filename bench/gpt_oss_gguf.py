# SPDX-License-Identifier: Apache-2.0
"""A GGUF file of gpt-oss-20b's shape for other programs and shears alike: experts in MXFP4, other matrices in Q8_0,
numbers random, routers among them, so that tokens choose different experts. All layers have the same experts, in places
of their own in the file (12 GB). Needs gguf and numpy.

    gpt_oss_gguf.py FILE [LAYERS]
"""
import sys

import gguf
import numpy as np

WIDTH, HEADS, KV_HEADS, HEAD, VOCAB, EXPERTS, USED, LAYERS = 2880, 64, 8, 64, 201088, 32, 4, 24
G = np.random.default_rng(1)


def q8_0(rows, cols):
    a = G.integers(0, 256, (rows, cols // 32, 34), dtype=np.uint8)
    a[:, :, :2] = np.frombuffer(np.float16(2.7e-4).tobytes(), np.uint8)
    return a.reshape(rows, -1)


def mxfp4(rows, cols):
    a = G.integers(0, 256, (EXPERTS, rows, cols // 32, 17), dtype=np.uint8)
    a[..., 0] = 119                                     # 2^-8, of codes up to 6
    return a.reshape(EXPERTS, rows, -1)


def main():
    path, layers = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else LAYERS
    w = gguf.GGUFWriter(path, "gpt-oss")
    for add, value in ((w.add_block_count, layers), (w.add_context_length, 131072), (w.add_embedding_length, WIDTH),
                       (w.add_feed_forward_length, WIDTH), (w.add_expert_feed_forward_length, WIDTH),
                       (w.add_head_count, HEADS), (w.add_head_count_kv, KV_HEADS), (w.add_key_length, HEAD),
                       (w.add_value_length, HEAD), (w.add_layer_norm_rms_eps, 1e-5), (w.add_rope_freq_base, 150000.0),
                       (w.add_sliding_window, 128), (w.add_expert_count, EXPERTS), (w.add_expert_used_count, USED),
                       (w.add_rope_scaling_type, gguf.RopeScalingType.YARN), (w.add_rope_scaling_factor, 32.0),
                       (w.add_rope_scaling_orig_ctx_len, 4096), (w.add_vocab_size, VOCAB),
                       (w.add_tokenizer_model, "no_vocab")):
        add(value)

    def numbers(name, *shape):
        w.add_tensor(name, (G.standard_normal(shape) * 0.02).astype(np.float32))

    def matrix(name, rows, cols):
        w.add_tensor(name, q8_0(rows, cols), raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    ones, experts = np.ones(WIDTH, np.float32), mxfp4(WIDTH, WIDTH)
    matrix("token_embd.weight", VOCAB, WIDTH)
    matrix("output.weight", VOCAB, WIDTH)
    w.add_tensor("output_norm.weight", ones)
    for i in range(layers):
        at = f"blk.{i}."
        for name in ("attn_norm", "post_attention_norm"):
            w.add_tensor(f"{at}{name}.weight", ones)
        for name, rows, cols in (("q", HEADS * HEAD, WIDTH), ("k", KV_HEADS * HEAD, WIDTH),
                                 ("v", KV_HEADS * HEAD, WIDTH), ("output", WIDTH, HEADS * HEAD)):
            matrix(f"{at}attn_{name}.weight", rows, cols)
            numbers(f"{at}attn_{name}.bias", rows)
        numbers(f"{at}attn_sinks.weight", HEADS)
        numbers(f"{at}ffn_gate_inp.weight", EXPERTS, WIDTH)
        numbers(f"{at}ffn_gate_inp.bias", EXPERTS)
        for name in ("gate", "up", "down"):
            w.add_tensor(f"{at}ffn_{name}_exps.weight", experts, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
            numbers(f"{at}ffn_{name}_exps.bias", EXPERTS, WIDTH)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


main()
