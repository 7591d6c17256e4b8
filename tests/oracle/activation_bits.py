#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logits of a LLaMA in GGUF with activations of 8 bits, in double precision.

    activation_bits.py GGUF... > activation_bits.json      (numpy, gguf)

What is multiplied with a packed matrix is rounded before: each 32 neighbours have a scale, max |x| / 127, and become
scale * rint(x / scale). Matrices of plain numbers see x as it is. Tokens are drawn until no number lies within 1e-5 of
the middle of two integers, so that other orders of sums round alike. Each file gets its tokens and the logits of each
as they are (`exact`) and so rounded (`rounded`)."""
import json
import pathlib
import sys

import gguf
import numpy as np

SPAN, TOKENS, PLAIN = 32, 12, ("F32", "F16", "BF16")


class Model:
    def __init__(self, path):
        r = gguf.GGUFReader(path)
        self.key = {k.split(".", 1)[-1]: f.contents() for k, f in r.fields.items()}
        self.at = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64) for t in r.tensors}
        self.is_packed = {t.name: t.tensor_type.name not in PLAIN for t in r.tensors}

    def multiply(self, x, name):
        if self.is_packed[name] and self.rounds:
            spans = x.reshape(len(x), -1, SPAN)
            scale = np.abs(spans).max(2, keepdims=True) / 127
            n = spans / scale
            self.margin = min(self.margin, np.abs(np.abs(n - np.rint(n)) - 0.5).min())
            x = (np.rint(n) * scale).reshape(x.shape)
        return x @ self.at[name].T

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(1, keepdims=True) + self.key["attention.layer_norm_rms_epsilon"]) * self.at[name]

    def turn(self, x, heads):
        """Rotary positions of neighbours in pairs, as GGUF has them."""
        n = self.key["rope.dimension_count"]
        x = x.reshape(len(x), heads, -1).copy()
        angle = np.arange(len(x))[:, None] * self.key["rope.freq_base"] ** (-np.arange(0, n, 2) / n)
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        a, b = x[..., 0:n:2].copy(), x[..., 1:n:2].copy()
        x[..., 0:n:2], x[..., 1:n:2] = a * cos - b * sin, b * cos + a * sin
        return x

    def attend(self, x, at):
        heads, kv = self.key["attention.head_count"], self.key["attention.head_count_kv"]
        q = self.turn(self.multiply(x, at + "attn_q.weight"), heads)
        k = self.turn(self.multiply(x, at + "attn_k.weight"), kv).repeat(heads // kv, 1)
        v = self.multiply(x, at + "attn_v.weight").reshape(len(x), kv, -1).repeat(heads // kv, 1)
        score = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[2])
        score[:, np.triu(np.ones(score.shape[1:], bool), 1)] = -np.inf
        score = np.exp(score - score.max(2, keepdims=True))
        out = np.einsum("hqk,khd->qhd", score / score.sum(2, keepdims=True), v)
        return self.multiply(out.reshape(len(x), -1), at + "attn_output.weight")

    def run(self, tokens, rounds):
        self.rounds, self.margin = rounds, 1.0
        x = self.at["token_embd.weight"][tokens]
        for layer in range(self.key["block_count"]):
            at = f"blk.{layer}."
            x = x + self.attend(self.norm(x, at + "attn_norm.weight"), at)
            y = self.norm(x, at + "ffn_norm.weight")
            gate = self.multiply(y, at + "ffn_gate.weight")
            y = gate / (1 + np.exp(-gate)) * self.multiply(y, at + "ffn_up.weight")
            x = x + self.multiply(y, at + "ffn_down.weight")
        head = "output.weight" if "output.weight" in self.at else "token_embd.weight"
        return self.multiply(self.norm(x, "output_norm.weight"), head)


def main(paths):
    all = {}
    for path in paths:
        m, seed = Model(path), 0
        while True:
            seed += 1
            tokens = np.random.default_rng(seed).integers(0, len(m.at["token_embd.weight"]), TOKENS)
            rounded = m.run(tokens, True)
            if m.margin > 1e-5:
                break
        exact = m.run(tokens, False)
        print(f"{path}: seed {seed}, rounding changes logits by up to {np.abs(rounded - exact).max():.3g}", file=sys.stderr)
        all[pathlib.Path(path).stem] = {"tokens": tokens.tolist(), "exact": exact.round(7).tolist(),
                                        "rounded": rounded.round(7).tolist()}
    print(json.dumps(all))


main(sys.argv[1:])
