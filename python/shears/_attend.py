# SPDX-License-Identifier: Apache-2.0
"""Attention tile by tile in PyTorch, on whatever device the tensors are: some rows of queries at a time, of one sequence
and all heads, so that no [heads, T, T] is ever in memory. And the codes of log8 (src/base/log8.h) in PyTorch, so that
one byte for each score leaves a GPU."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Iterator

import torch

HOST_BYTES, DEVICE_BYTES = 4 << 20, 64 << 20        # of a tile's logits: what stays in a cache; what keeps a GPU busy


@dataclass
class Shape:
    """What one call of attention is, besides its tensors: query [B, heads, Q, d], key [B, KV heads, K, d]."""
    scaling: float
    past: int                       # tokens before the first query
    offset: int                     # the position of the first key
    causal: bool                    # no query sees a later key
    window: int = 0                 # of causal attention: how many keys a query sees at most; 0: all
    softcap: float | None = None
    dropout: float = 0.0
    mask: torch.Tensor | None = None        # [B, 1 or heads, Q, K]: bool, True where seen, or numbers that are added
    bias: torch.Tensor | None = None        # [1 or B, 1 or heads, Q, K], added
    sinks: torch.Tensor | None = None       # [heads]


@dataclass
class Tile:
    """Rows [first, last) of the queries of one sequence over the keys [begin, end): float32 [heads, rows, keys]."""
    batch: int
    first: int
    last: int
    begin: int
    end: int
    scores: torch.Tensor            # the softmax
    logits: torch.Tensor            # what it was taken of
    sink: torch.Tensor | None       # [heads, rows]: what the sinks take


def seen_of(mask: torch.Tensor) -> torch.Tensor:
    """True where a mask of either kind lets a query see a key."""
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def _columns(s: Shape, first: int, last: int, n_key: int) -> tuple[int, int]:
    """The keys that rows [first, last) can see."""
    if not s.causal:
        return 0, n_key
    begin = max(0, s.past + first - s.window + 1 - s.offset) if s.window else 0
    return begin, min(n_key, s.past + last - s.offset)


def _hide(logits: torch.Tensor, s: Shape, b: int, rows: slice, columns: slice) -> torch.Tensor:
    """Sets the logits of keys that a query does not see to the least number, as eager attention does."""
    if s.bias is not None:
        logits += s.bias[b if s.bias.shape[0] > 1 else 0, :, rows, columns]
    least = torch.finfo(torch.float32).min
    if s.mask is not None:
        mask = s.mask[b if s.mask.shape[0] > 1 else 0, :, rows, columns]
        return logits.masked_fill_(~mask, least) if mask.dtype == torch.bool else logits.add_(mask).clamp_(min=least)
    if s.causal:
        at = lambda part, start: torch.arange(part.start, part.stop, device=logits.device) + start
        query, key = at(rows, s.past)[:, None], at(columns, s.offset)[None]
        hidden = key > query
        if s.window:
            hidden |= query - key >= s.window
        logits.masked_fill_(hidden, least)
    return logits


def _softmax(logits: torch.Tensor, sinks: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | None]:
    if sinks is None:
        return torch.softmax(logits, -1), None
    more = sinks.float()[:, None, None].expand(-1, logits.shape[1], 1)
    both = torch.softmax(torch.cat([logits, more], -1), -1)
    return both[..., :-1].contiguous(), both[..., -1].contiguous()


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, s: Shape,
           take: Callable[[Tile], None]) -> torch.Tensor:
    """The attention's output [B, Q, heads, d of values]; every tile goes to `take`. Logits are computed as the model's
    type has them, softmax in float32, as transformers' eager attention does."""
    n_batch, n_head, n_query, _ = query.shape
    n_kv, n_key = key.shape[1], key.shape[2]
    out = torch.empty((n_batch, n_query, n_head, value.shape[-1]), dtype=value.dtype, device=query.device)
    room = HOST_BYTES if query.device.type == "cpu" else DEVICE_BYTES
    step = max(1, room // (4 * n_head * n_key))
    for b in range(n_batch):
        keys, values = key[b].transpose(1, 2), value[b]
        for first in range(0, n_query, step):
            last = min(first + step, n_query)
            begin, end = _columns(s, first, last, n_key)
            rows = query[b, :, first:last].reshape(n_kv, -1, query.shape[-1])
            logits = torch.bmm(rows, keys[:, :, begin:end]).mul_(s.scaling)
            if s.softcap is not None:
                logits.div_(s.softcap).tanh_().mul_(s.softcap)
            logits = logits.view(n_head, last - first, end - begin).float()
            logits = _hide(logits, s, b, slice(first, last), slice(begin, end))
            scores, sink = _softmax(logits, s.sinks)
            take(Tile(b, first, last, begin, end, scores, logits, sink))
            weights = scores.to(value.dtype)
            if s.dropout:
                weights = torch.nn.functional.dropout(weights, s.dropout)
            part = torch.bmm(weights.view(n_kv, -1, end - begin), values[:, begin:end])
            out[b, first:last] = part.view(n_head, last - first, -1).transpose(0, 1)
    return out


# ---- log8 ----

STEP, ZERO, CUT, LAST = 0.0767528364, 244, 60, 243


def _anchor(n: int) -> int:
    octave = n.bit_length() - 1
    return 1 + ((octave << 16) + ((n << 16 >> octave) - 65536)) * 9030 // (1000 << 16)


def _float_below(x: float) -> float:
    """The largest float32 that is not above x."""
    f = torch.tensor(x, dtype=torch.float32)
    return float(f if float(f) <= x else torch.nextafter(f, torch.tensor(0.0)))


class Codes:
    """The numbers that rows of n keys need, for the lengths that were asked for, on one device."""

    def __init__(self, device):
        self.device, self.known = device, {}

    def of(self, lengths: tuple[int, ...]) -> torch.Tensor:
        """[5, rows]: anchor, logarithm of n, the largest floats that are not above 1/n, 2/n, 5/n."""
        if lengths not in self.known:
            if len(self.known) > 4096:
                self.known.clear()
            rows = []
            for n in lengths:
                one = _float_below(1 / n)
                rows.append([_anchor(n), math.log(n), one, 2 * one, _float_below(5 / n)])
            self.known[lengths] = torch.tensor(rows, dtype=torch.float32, device=self.device).T.contiguous()
        return self.known[lengths]


def _code(x, p, limits, codes, percent):
    """src/base/log8.h: sh_log8_code. x: how many cells the logit is from the row's origin."""
    code_1, code_2, code_5 = codes
    x = torch.round(x).clamp_(max=LAST)
    if percent is not None:
        x += p < percent
    above_1, above_2, above_5 = (p > limit for limit in limits)
    least = torch.where(above_1, torch.where(above_2, 0.0, code_2 + 1), code_1 + 1)
    most = torch.where(above_5, code_5, torch.where(above_1, code_1, float(ZERO)))
    return torch.minimum(torch.maximum(x, least), most)


def log8(tile_scores: torch.Tensor, tile_logits: torch.Tensor, lengths: Iterator[int], known: Codes) -> torch.Tensor:
    """The codes, uint8, of rows [heads, rows, keys] whose row r sees lengths[r] keys; those of other keys mean nothing."""
    anchor, log_n, *limits = known.of(tuple(lengths))[..., None]
    most, top = tile_scores.amax(-1, keepdim=True), tile_logits.amax(-1, keepdim=True)
    origin = top - most.log() + ((anchor + 0.5) * STEP - log_n)
    codes = anchor, anchor - 9, anchor - 21
    lowest = _code((top - origin) * (-1 / STEP), most, limits, codes, None)
    cut = torch.where(lowest + CUT < LAST, lowest + CUT, float(LAST - 1))
    codes = [code + (code >= cut) for code in codes]
    percent = (most.double() * 0.01)
    rounded = percent.float()
    rounded = torch.where(rounded.double() < percent, torch.nextafter(rounded, torch.ones_like(rounded)), rounded)
    x = (tile_logits - origin).mul_(-1 / STEP)
    return _code(x, tile_scores, limits, codes, rounded).to(torch.uint8)
