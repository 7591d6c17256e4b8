# SPDX-License-Identifier: Apache-2.0
"""A cache for transformers that keeps the tokens which a policy of the library chooses.

Keys and values of a layer are one tensor each, [slots of all sequences and KV heads, head_dim], so that heads with
different budgets take no more than these. The attention function "shears", which transformers calls in place of "sdpa",
takes a layer's new keys and values where the cache's `update` left them, attends over what is kept, and shows the rows
to the policy (`shears_evictor_...` of the library). A prompt's keys and values are stored when it has been compressed."""
from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, Sequence

import numpy
import torch
import transformers
from transformers.cache_utils import CacheLayerMixin
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from . import _lib
from ._ask import option_words
from ._attend import Shape, attend, seen_of
from ._model import misused, without_gradient

NAME = "shears"                         # of the attention function
TILE = 1 << 24                          # scores of queries that are computed at once, at most
SCORES, KEYS, VALUES, QUERIES = 1, 2, 4, 8
_at_work = threading.local()            # .layer: whose keys and values have come and have not been attended over
_claiming = threading.Lock()


# ---- the library's part ----

class Setup(ctypes.Structure):
    _fields_ = [("bytes", c_size_t), ("policy", c_char_p), ("budget", c_char_p), ("plan", c_char_p), ("model", c_char_p),
                ("layers", c_int), ("kv_heads", c_int), ("length", c_int), ("prefill", c_int), ("seed", c_uint64)]


class Next(ctypes.Structure):
    _fields_ = [("n", c_int), ("kv_heads", c_int), ("n_slot", c_int), ("slot", c_void_p), ("pos", c_void_p)]


class Rows(ctypes.Structure):
    _fields_ = [("n", c_int), ("n_slot", c_int), ("n_query", c_int), ("row", c_void_p), ("seen", c_void_p),
                ("q", c_void_p), ("k", c_void_p), ("v", c_void_p)]


class Moved(ctypes.Structure):
    _fields_ = [("kv_heads", c_int), ("n_slot", c_int), ("from_", c_void_p)]


FUNCTIONS = {
    "evictor_open": (c_void_p, [POINTER(Setup), _lib.ERROR]),
    "evictor_copy": (c_void_p, [c_void_p, _lib.ERROR]),
    "evictor_free": (None, [c_void_p]),
    "evictor_needs": (c_int, [c_void_p, _lib.ERROR]),
    "evictor_layer": (c_int, [c_void_p, c_int, c_int, c_int, c_int, _lib.ERROR]),
    "evictor_next": (c_int, [c_void_p, c_int, c_int, POINTER(Next), _lib.ERROR]),
    "evictor_read": (c_int, [c_void_p, c_int, POINTER(Rows), _lib.ERROR]),
    "evictor_settle": (c_int, [c_void_p, c_int, POINTER(Moved), _lib.ERROR]),
    "evictor_budget": (c_int, [c_void_p, c_int, c_int, _lib.ERROR]),
    "evictor_kept": (c_int, [c_void_p, c_int, c_int, c_void_p, c_int, _lib.ERROR]),
    "evictor_bytes": (c_size_t, [c_void_p]),
}


def _ints(at, *shape):
    """A copy of whole numbers of the library's."""
    n = int(numpy.prod(shape))
    return numpy.frombuffer(ctypes.string_at(at, 4 * n), "i4").reshape(shape).copy()


def _at(array):
    return None if array is None else array.ctypes.data


class Evictor:
    """The policies of one sequence, of all layers and KV heads."""

    def __init__(self, at):
        self.at = at
        self.needs = _lib.call("evictor_needs", at)

    @classmethod
    def open(cls, **setup):
        for name, arguments in FUNCTIONS.items():
            _lib.declare(name, *arguments)
        return cls(_lib.call("evictor_open", Setup(bytes=ctypes.sizeof(Setup), **setup)))

    def copy(self):
        return Evictor(_lib.call("evictor_copy", self.at))

    def __deepcopy__(self, _):
        return self.copy()

    def __reduce__(self):
        raise TypeError("a shears.Cache cannot be pickled: its policies are in the library; copy.deepcopy() copies it")

    def __del__(self):
        if getattr(self, "at", None):
            _lib.library().shears_evictor_free(self.at)

    def layer(self, layer, kv_heads, head_dim, window):
        _lib.call("evictor_layer", self.at, layer, kv_heads, head_dim, window)

    def next(self, layer, n):
        """(tokens that may come, their slots [heads, n], the positions in all slots [heads, slots])"""
        to = Next()
        _lib.call("evictor_next", self.at, layer, n, to)
        return to.n, _ints(to.slot, to.kv_heads, to.n), _ints(to.pos, to.kv_heads, to.n_slot)

    def read(self, layer, n, n_slot, n_query, row, seen, q, k, v):
        _lib.call("evictor_read", self.at, layer, Rows(n, n_slot, n_query, _at(row), _at(seen), _at(q), _at(k), _at(v)))

    def settle(self, layer):
        """The old slots of the tokens [heads, slots], -1 for none; None: nothing has moved."""
        to = Moved()
        _lib.call("evictor_settle", self.at, layer, to)
        return _ints(to.from_, to.kv_heads, to.n_slot) if to.n_slot else None

    def budget(self, layer, head):
        return _lib.call("evictor_budget", self.at, layer, head)

    def kept(self, layer, head):
        to = numpy.empty(_lib.call("evictor_kept", self.at, layer, head, None, 0), "i4")
        _lib.call("evictor_kept", self.at, layer, head, to.ctypes.data, len(to))
        return to

    def bytes(self):
        return _lib.library().shears_evictor_bytes(self.at)


# ---- attention ----

class _How:
    """What the attention function is called with: scale, cap, sinks, and which columns of the text are seen."""

    def __init__(self, module, scaling, softcap, sinks, mask, bias):
        self.scaling, self.softcap, self.sinks = scaling, softcap, sinks
        self.model_scaling = getattr(module, "scaling", None) or scaling
        self.mask, self.bias = mask, bias

    def extra(self, sequence, rows, columns, group):
        """What is added to scores [heads, group, rows, slots], for these columns [heads, slots]: masks, -inf where a key
        is not seen. None: nothing."""
        total = None
        for given in (self.mask, self.bias):
            if given is None:
                continue
            one = given[sequence if given.shape[0] > 1 else 0][:, rows].to(columns.device)      # [1 or all heads, r, all]
            heads, slots = columns.shape
            one = one.expand(heads * group, -1, -1).reshape(heads, group, one.shape[1], one.shape[2])
            at = columns[:, None, None, :].expand(heads, group, one.shape[2], slots)
            one = one.gather(3, at)
            if one.dtype == torch.bool:
                one = torch.zeros_like(one, dtype=torch.float32).masked_fill_(~one, float("-inf"))
            else:
                one = one.float().masked_fill(~seen_of(one), float("-inf"))
            total = one if total is None else total + one
        return total

    def softmax(self, q, k, extra):
        """Probabilities [..., group, rows, slots] in f32, of queries [..., group, rows, d] over keys [..., slots, d]."""
        x = torch.matmul(q, k.unsqueeze(-3).transpose(-1, -2)).float() * self.scaling
        if self.softcap:
            x = torch.tanh(x / self.softcap) * self.softcap
        if extra is not None:
            x = x + extra
        if self.sinks is None:
            return torch.softmax(x, -1)
        sinks = self.sinks.float().reshape(x.shape[-4], x.shape[-3], 1, 1).expand(*x.shape[:-1], 1)
        return torch.softmax(torch.cat([x, sinks], -1), -1)[..., :-1]


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, softcap=None, s_aux=None,
              sliding_window=None, position_bias=None, is_causal=None, **options):
    """transformers' attention function "shears": eager attention, and the reader of a `Cache`."""
    layer, _at_work.layer = getattr(_at_work, "layer", None), None
    how = _How(module, query.shape[-1] ** -0.5 if scaling is None else scaling, softcap, s_aux, attention_mask, position_bias)
    if layer is None:
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        shape = Shape(how.scaling, key.shape[2] - query.shape[2], 0, bool(causal) and attention_mask is None,
                      softcap=softcap, mask=attention_mask, bias=position_bias, sinks=s_aux)
        return attend(query, key, value, shape, lambda tile: None), None
    if layer.new is None or layer.new[0].shape[2] != query.shape[2] or len(layer.new[0]) != len(query):
        raise layer.cache._unread()
    if not all(_same(*pair) for pair in zip((key, value), layer.new)):
        raise misused("model", "keys or values that attention does not read as they were put into the cache", "the same ones",
                      "latent attention, for example, makes them anew of what it caches")
    with torch.no_grad():
        out = layer.attend(module, query, how, sliding_window)
    return without_gradient(out, (query, key, value), ("shears.Cache", "gradients were asked for through a cache",
                            "train without one, or read under torch.no_grad()")), None


def _same(given, cached):
    return given is cached or (given.shape == cached.shape and torch.equal(given.to(cached.dtype), cached))


ALL_ATTENTION_FUNCTIONS.register(NAME, attention)
ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])


# ---- a layer ----

def _floats(x):
    return numpy.ascontiguousarray(x.float().cpu().numpy())


class Layer(CacheLayerMixin):
    """Keys and values of one layer."""
    is_compileable = is_sliding = is_croppable = False
    supports_early_init = False

    def __init__(self, cache, index):
        super().__init__()
        self.cache, self.index = cache, index
        self.columns = 0                # of the text that have come, padding included
        self.read = []                  # tokens of each sequence that have come
        self.new = None                 # keys and values that have not been attended over
        self.keys = self.values = None  # [slots, d]
        self.room = self.first = None   # [batch, KV heads]: slots; the first of them in keys and values
        self.table = None               # [batch, KV heads, most slots]: slots' rows; None: they lie in that order
        self.budgets = None             # [batch, KV heads]
        self.heads = self.group = self.d = 0

    # what transformers asks

    def lazy_initialization(self, key_states, value_states=None):
        self.is_initialized = True

    def get_seq_length(self, *_):
        return self.columns

    def get_mask_sizes(self, query_length, *_):
        n = query_length.shape[0] if isinstance(query_length, torch.Tensor) and query_length.ndim else int(query_length)
        return self.columns + n, 0

    def get_max_length(self):
        return -1

    get_max_cache_shape = get_max_length

    def update(self, key_states, value_states, *_, **__):
        self.cache._claim()
        self.new, self.is_initialized = (key_states, value_states), True
        self.columns += key_states.shape[-2]
        _at_work.layer = self
        return key_states, value_states

    def nbytes(self):
        return sum(x.untyped_storage().nbytes() for x in (self.keys, self.values) if x is not None)

    # a call's tokens

    def attend(self, module, query, how, window):
        """The output [batch, rows, heads, d] for the queries [batch, heads, rows, d] of the tokens that have just come."""
        cache, (key, value), self.new = self.cache, self.new, None
        batch, heads, n, _ = key.shape
        self.heads, self.group = heads, query.shape[1] // heads
        real = self.tokens(how.mask, batch, n, key.device)
        counts = [n] * batch if real is None else [int(x) for x in real.sum(1)]
        cache._begin(module, batch, heads, counts)
        self.describe(module, key, value, window)
        cache._place(self.read, self.columns - n, counts, real, key.device)
        q = query.reshape(batch, heads, self.group, n, -1)
        if n == 1 and min(counts) == 1 and all(self.read):
            out = self.step(q, key, value, how)
        else:
            out = self.pass_through(q, key, value, how, real)
        for b in range(batch):
            self.read[b] += counts[b]
        cache._weigh()
        cache._claimed = None
        return out.permute(0, 3, 1, 2, 4).flatten(2, 3).contiguous()

    def tokens(self, mask, batch, n, device):
        """Which of the new columns hold tokens, [batch, n]: those that their own query sees. None: all."""
        if mask is None:
            return None
        at = torch.arange(n, device=mask.device)
        own = mask[:, :, at, self.columns - n + at]
        own = seen_of(own).any(1).to(device)
        own = own.expand(batch, n)
        return None if bool(own.all()) else own

    def describe(self, module, key, value, window):
        if window is None:
            types = getattr(module.config, "layer_types", None)
            if types and self.index < len(types) and types[self.index] == "sliding_attention":
                window = getattr(module.config, "sliding_window", None)
        self.d = max(key.shape[-1], value.shape[-1])
        if not self.read:
            self.read = [0] * len(key)
        for b, evictor in enumerate(self.cache.evictors):
            if evictor is not None and not self.read[b]:
                evictor.layer(self.index, key.shape[1], self.d, int(window or 0))

    def show(self, evictor, p, visible, q, k, v, n_slot, how):
        """Rows [heads, group, n, slots] and what belongs to them go to the policy."""
        needs, heads, n = evictor.needs, p.shape[0], p.shape[2]
        row = seen = queries = None
        if needs & SCORES:
            row = _floats(torch.nn.functional.pad(p.mean(1)[..., :n_slot], (0, max(0, n_slot - p.shape[-1]))))
            seen = numpy.ascontiguousarray(visible.sum(-1).expand(heads, n).to(torch.int32).cpu().numpy())
        if needs & QUERIES:             # as they are before the model's scale, which OPT has applied to them
            queries = _floats(self.wide(q.transpose(1, 2) * (how.scaling / how.model_scaling)))
        keys = _floats(self.wide(k)) if needs & KEYS else None
        values = _floats(self.wide(v)) if needs & VALUES else None
        evictor.read(self.index, n, n_slot, self.group, row, seen, queries, keys, values)

    def wide(self, x):
        return x if x.shape[-1] == self.d else torch.nn.functional.pad(x, (0, self.d - x.shape[-1]))

    def places(self, b, pos):
        """The columns of the tokens at these positions."""
        columns = self.cache.text[b]
        return pos.clamp(min=0) if columns is None else columns.to(pos.device)[pos.clamp(min=0)]

    def seen(self, b, rows, pos, at, how):
        """(which slots each query sees [heads or 1, rows, slots], what is added to scores) for the queries of these rows
        at positions `at`, over slots with tokens `pos` [heads, slots]."""
        there = (pos >= 0)[:, None, :]
        extra = how.extra(b, rows, self.places(b, pos), self.group)
        if how.mask is None:            # nothing but causal
            there = there & (pos[:, None, :] <= at[None, :, None])
        none = torch.zeros(there.shape, device=pos.device).masked_fill_(~there, float("-inf"))[:, None]
        extra = none if extra is None else extra + none
        return (extra > float("-inf")).any(1), extra

    # one token of each sequence

    def step(self, q, key, value, how):
        batch, heads = key.shape[:2]
        answers = [e.next(self.index, 1) for e in self.cache.evictors]
        need = numpy.stack([slot[:, 0] + 1 for _, slot, _ in answers])
        if (need > self.room).any():
            self.widen(numpy.maximum(self.room, need))
        most = int(self.room.max())
        pos = numpy.full((batch, heads, most), -1, "i4")
        for b, (_, _, own) in enumerate(answers):
            pos[b, :, :min(most, own.shape[1])] = own[:, :most]
        at = torch.from_numpy(self.first + need - 1).flatten().to(key.device)
        self.keys.index_copy_(0, at, key.flatten(0, 2))
        self.values.index_copy_(0, at, value.flatten(0, 2))
        pos = torch.from_numpy(pos).long().to(key.device)
        k, v = self.padded(self.keys), self.padded(self.values)
        seen = [self.seen(b, slice(0, 1), pos[b], pos.new_tensor([self.read[b]]), how) for b in range(batch)]
        p = how.softmax(q, k, torch.stack([extra.expand(heads, -1, 1, most) for _, extra in seen]))
        out = torch.matmul(p.to(v.dtype), v.unsqueeze(2))
        for b, evictor in enumerate(self.cache.evictors):
            self.show(evictor, p[b], seen[b][0], q[b], key[b], value[b], answers[b][2].shape[1], how)
        return out

    def padded(self, x):
        batch, heads = self.room.shape
        if self.table is None:
            return x.view(batch, heads, -1, x.shape[-1])
        return x[self.table.flatten()].view(batch, heads, -1, x.shape[-1])

    # several tokens

    def pass_through(self, q, key, value, how, real):
        """Sequence by sequence, and within one as many tokens at once as can be read before one leaves."""
        batch, heads, n = key.shape[:3]
        out = torch.zeros(*q.shape[:4], value.shape[-1], dtype=value.dtype, device=value.device)
        kept = []
        for b in range(batch):
            rows = torch.arange(n, device=key.device) if real is None else real[b].nonzero()[:, 0]
            old = self.of_sequence(b)
            if not len(rows):
                none = tuple(x.new_zeros(heads, 0, x.shape[-1]) for x in (key[b], value[b]))
                kept.append((old or none) + (numpy.zeros(heads, "i8") if old is None else self.room[b],))
                continue
            kept.append(self.sequence(b, rows, (q[b], key[b], value[b], out[b]), how, old))
        self.store(kept)
        return out

    def sequence(self, b, rows, tensors, how, old):
        """The tokens of one sequence, in these rows of the tensors (of `out`, too, which is filled). Returns its keys and
        values [heads, slots, d], and the slots that heads need."""
        q, key, value, out = tensors
        evictor, done = self.cache.evictors[b], 0
        while done < len(rows):
            n, slot, pos = evictor.next(self.index, len(rows) - done)
            now = rows[done:done + n]
            k, v = key[:, now], value[:, now]
            old = self.put(old, k, v, slot, pos.shape[1])
            self.tiles(b, now, (q, k, v, out), how, old, torch.from_numpy(pos).long().to(key.device), done)
            done += n
        moved = evictor.settle(self.index)
        if moved is not None:
            pos, at = moved, torch.from_numpy(moved).long().to(key.device).clamp(min=0)
            old = tuple(x.gather(1, at[..., None].expand(-1, -1, x.shape[-1])) for x in old)
        return old + (((pos >= 0) * numpy.arange(1, pos.shape[1] + 1)).max(1),)

    def put(self, old, k, v, slot, n_slot):
        """Keys and values with the new ones in their slots."""
        heads, n = slot.shape
        if old is None and n == n_slot and (slot == numpy.arange(n)).all():
            return k, v
        slot = torch.from_numpy(slot).long().to(k.device)
        made = []
        for i, new in enumerate((k, v)):
            was = old[i] if old is not None else new.new_zeros(heads, 0, new.shape[-1])
            if was.shape[1] < n_slot:
                was = torch.cat([was, was.new_zeros(heads, n_slot - was.shape[1], was.shape[2])], 1)
            made.append(was.scatter(1, slot[..., None].expand(-1, -1, new.shape[-1]), new))
        return tuple(made)

    def tiles(self, b, rows, tensors, how, kept, pos, done):
        """Attention of tokens that all fit, some queries at a time."""
        q, k, v, out = tensors
        heads, n_slot = pos.shape
        n, tile = len(rows), max(1, TILE // (heads * self.group * n_slot))
        all_k, all_v = (x[:, :n_slot] for x in kept)
        for i in range(0, n, tile):
            some = rows[i:i + tile]
            at = torch.arange(i, i + len(some), device=rows.device) + self.read[b] + done
            visible, extra = self.seen(b, some, pos, at, how)
            p = how.softmax(q[:, :, some], all_k, extra)
            out[:, :, some] = torch.matmul(p.to(v.dtype), all_v[:, None])
            self.show(self.cache.evictors[b], p, visible, q[:, :, some], k[:, i:i + tile], v[:, i:i + tile], n_slot, how)

    # slots

    def of_sequence(self, b):
        """Keys and values [heads, slots, d]; None: there are none."""
        if self.keys is None or not self.room[b].any():
            return None
        most = int(self.room[b].max())
        at = torch.from_numpy(self.first[b][:, None] + numpy.minimum(numpy.arange(most), self.room[b][:, None] - 1))
        at = at.flatten().to(self.keys.device)
        return tuple(x[at].view(len(self.room[b]), most, -1) for x in (self.keys, self.values))

    def rooms(self, used):
        """Slots for heads that use so many [batch, heads]: some to spare, but no more than the budgets."""
        return numpy.maximum(used, numpy.minimum(self.budgets, used + numpy.maximum(16, used // 4)))

    def lay_out(self, room, device):
        self.room = room
        self.first = numpy.concatenate([[0], numpy.cumsum(room.flatten())[:-1]]).reshape(room.shape)
        most = int(room.max())
        self.table = None
        if (room != most).any():
            at = self.first[..., None] + numpy.minimum(numpy.arange(most), numpy.maximum(room, 1)[..., None] - 1)
            self.table = torch.from_numpy(numpy.minimum(at, room.sum() - 1)).to(device)

    def store(self, kept):
        """Keys and values of all sequences, each [heads, slots, d], and the slots that their heads need."""
        used = numpy.stack([need for *_, need in kept])
        self.budgets = numpy.array([[0 if e is None else e.budget(self.index, h) for h in range(self.heads)]
                                    for e in self.cache.evictors])
        self.lay_out(self.rooms(used), kept[0][0].device)
        for i, name in enumerate(("keys", "values")):
            one = kept[0][i]
            to = one.new_zeros(int(self.room.sum()), one.shape[-1])
            for b, of in enumerate(kept):
                for h in range(len(of[i])):
                    first, n = self.first[b, h], used[b, h]
                    to[first:first + n] = of[i][h, :n]
            setattr(self, name, to)

    def widen(self, used):
        """The same in more slots."""
        old, first, had = (self.keys, self.values), self.first, self.room
        self.lay_out(self.rooms(used), old[0].device)
        self.keys, self.values = (x.new_zeros(int(self.room.sum()), x.shape[-1]) for x in old)
        for to, x in zip((self.keys, self.values), old):
            for at, was, n in zip(self.first.flatten(), first.flatten(), had.flatten()):
                to[at:at + n] = x[was:was + n]

    def select(self, indices):
        """The sequences of these numbers, in this order."""
        if self.keys is None:
            return
        parts = [[(int(self.first[b, h]), int(self.room[b, h])) for h in range(self.room.shape[1])] for b in indices]
        self.keys, self.values = (torch.cat([x[at:at + n] for of in parts for at, n in of]) for x in (self.keys, self.values))
        self.read = [self.read[b] for b in indices]
        self.budgets = self.budgets[indices]
        self.lay_out(self.room[indices], self.keys.device)


# ---- the cache ----

class CacheStats:
    """What a `Cache` holds now.

    bytes: size of keys and values; peak_bytes: the largest so far; planned_bytes: size with full budgets, None if
    nothing is ever evicted; policy_bytes: state of the policies on the host; tokens: read so far, for each sequence;
    kept: int32 arrays of positions in order, by sequence, layer and KV head (`kept[0][3][1]`)."""

    def __init__(self, cache):
        self.bytes, self.peak_bytes = cache._bytes(), cache._peak
        self.planned_bytes = cache._planned()
        self.policy_bytes = sum(e.bytes() for e in cache.evictors if e is not None)
        self.tokens = list(cache.layers[0].read) if cache.layers else []
        self.kept = [[[e.kept(x.index, h) for h in range(x.room.shape[1])] for x in cache.layers if x.keys is not None]
                     for e in cache.evictors if e is not None]

    def __repr__(self):
        return "<CacheStats: %d bytes, at most %d, planned %d; %s tokens>" % (
            self.bytes, self.peak_bytes, self.planned_bytes, ", ".join(map(str, self.tokens)))


class Cache(transformers.Cache):
    """A cache for `generate()` and forward passes of transformers that keeps what a policy chooses, and takes no more
    memory than that.

        model.set_attn_implementation("shears")
        cache = shears.Cache(policy="h2o:recent=25", budget=0.2)
        model.generate(**inputs, past_key_values=cache)
        cache.stats

    policy: one of `shears.policies()`, with its knobs. budget: tokens that each KV head keeps (64), or a share of
    `length` (0.2). plan: the file of a plan, instead of both. length: tokens of the text that a share or a plan refers
    to; by default, for each sequence, the tokens of the first call. prefill: the number of first tokens that see
    everything before any token is evicted; by default the tokens of the first call (with a plan: as the plan says);
    0: tokens are evicted from the start. model: the model to set to the attention implementation "shears". seed: for
    policies that draw random numbers. Use a cache for one batch of texts, in one thread at a time; `reset()` empties it
    for another. Positions are those of the text."""

    def __init__(self, policy: str | None = None, budget: float | str | None = None, *,
                 plan: str | os.PathLike | None = None, length: int | None = None, prefill: int | None = None,
                 seed: int = 0, model: Any = None):
        super().__init__(layers=[])
        for name, value, least in (("length", length, 1), ("prefill", prefill, 0), ("seed", seed, 0)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, numpy.integer))
                                      or not least <= value < 1 << 63):
                raise misused(name, repr(value), "a whole number from %d" % least)
        words = {name: self._word(name, value) for name, value in (("policy", policy), ("budget", budget), ("plan", plan))}
        self._setup = dict(words, seed=int(seed))
        self._length, self._prefill = length, prefill
        self.reset()
        self._check()
        if model is not None:
            self._take(model)

    @staticmethod
    def _word(name, value):
        if value is None:
            return None
        words = option_words(name, value)
        if len(words) != 1 or words[0] is None:
            raise misused(name, repr(value), "one")
        return words[0]

    def _check(self):
        """Raises errors that do not depend on the model. A plan is checked with the model that it is for."""
        layers = heads = 1
        if self._setup["plan"] is not None:
            import json
            try:
                with open(self._setup["plan"], "rb") as f:
                    of = json.load(f)["model"]
                layers, heads = int(of["n_layer"]), int(of["n_kv_head"])
            except (OSError, ValueError, KeyError, TypeError):
                pass                    # the library says what is wrong
        Evictor.open(layers=layers, kv_heads=heads, length=int(self._length or 1 << 20), prefill=self._first_tokens(1),
                     **self._setup)

    @staticmethod
    def _take(model):
        if not hasattr(model, "set_attn_implementation"):
            raise misused("model", type(model).__name__, "a model of transformers")
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation != NAME:
            raise misused("model", "%s, which does not call attention functions" % type(model).__name__,
                          "one whose attention implementation can be set")

    def _first_tokens(self, count):
        if self._prefill is not None:
            return int(self._prefill)
        return -1 if self._setup["plan"] is not None else count

    # ---- what layers ask ----

    def _begin(self, module, batch, heads, counts):
        """The tokens of a call come to a layer; with its first ones a sequence gets its policies."""
        if not self.evictors:
            self.evictors, self.text, self.known = [None] * batch, [None] * batch, [0] * batch
        if len(self.evictors) != batch:
            raise misused("cache", "%d sequences" % batch, "%d as before" % len(self.evictors),
                          "reset() empties the cache for other texts")
        config = module.config
        if getattr(config, "num_kv_shared_layers", 0):
            raise misused("model", "layers that share keys and values", "layers with their own")
        for b, n in enumerate(counts):
            if n and self.evictors[b] is None:
                self.evictors[b] = Evictor.open(
                    model=_lib.encode(getattr(config, "_name_or_path", "") or config.model_type),
                    layers=config.num_hidden_layers, kv_heads=max(heads, getattr(config, "num_key_value_heads", 0) or 0),
                    length=int(self._length or n), prefill=self._first_tokens(n), **self._setup)

    def _place(self, read, columns, counts, real, device):
        """The columns of the new tokens of each sequence, of which `read` have been read; the first layer says it for all.
        Without padding columns are positions."""
        for b, n in enumerate(counts):
            if read[b] + n <= self.known[b]:
                continue
            if self.text[b] is None and (real is not None and n < len(real[b]) or self.known[b] < columns):
                self.text[b] = torch.arange(self.known[b], device=device)
            if self.text[b] is not None:
                new = torch.arange(n, device=device) if real is None else real[b].nonzero()[:, 0]
                self.text[b] = torch.cat([self.text[b], new + columns])
            self.known[b] += n

    def _weigh(self):
        self._peak = max(self._peak, self._bytes())

    def _claim(self):
        """A layer's keys and values come: until they have been attended over, nothing else does."""
        with _claiming:
            before, self._claimed = self._claimed, self._claimed or threading.get_ident()
        if before not in (None, threading.get_ident()):
            raise misused("cache", "another thread at work in it, or stopped there by an error", "one thread at a time",
                          "give each thread a cache; after a call that failed, reset() the cache")
        if before:
            raise self._unread()

    def _unread(self):
        _at_work.layer = None
        return misused("cache", "keys and values whose rows were not seen", "the attention implementation " + NAME,
                       'call model.set_attn_implementation("shears") first; after a call that failed, reset() the cache')

    # ---- what it holds ----

    @property
    def stats(self) -> CacheStats:
        """What it holds now: bytes, and the kept positions of every head."""
        return CacheStats(self)

    def _bytes(self):
        return sum(x.nbytes() for x in self.layers)

    def _planned(self):
        most = 0
        for x in self.layers:
            if x.keys is not None and (x.budgets >= 1 << 22).any():
                return None
            if x.keys is not None:
                most += int(x.budgets.sum()) * sum(y.shape[-1] * y.element_size() for y in (x.keys, x.values))
        return most

    # ---- what transformers asks ----

    def update(self, key_states, value_states, layer_idx, *arguments, **options):
        if not layer_idx and any(x.columns != self.layers[0].columns for x in self.layers):
            raise misused("cache", "layers that have read different numbers of tokens", "the same number in all",
                          "after a call that failed, reset() the cache")
        while len(self.layers) <= layer_idx:
            self.layers.append(Layer(self, len(self.layers)))
        return self.layers[layer_idx].update(key_states, value_states)

    def get_seq_length(self, layer_idx=0, *_):
        return self.layers[layer_idx].columns if layer_idx < len(self.layers) else 0

    def get_mask_sizes(self, query_length, layer_idx=0):
        return (self.layers[layer_idx] if layer_idx < len(self.layers) else Layer(self, 0)).get_mask_sizes(query_length)

    def get_max_length(self, *_):
        return -1

    def get_max_cache_shape(self, *_: Any) -> int:
        """-1, no limit; asked by versions of transformers before `get_max_length`."""
        return -1

    is_compileable = is_croppable = False

    def reset(self) -> None:
        """Empties the cache, for other texts."""
        self.layers, self.evictors, self.text, self.known = [], [], [], []
        self._peak, self._claimed = 0, None       # _claimed: the thread whose keys and values have not been attended over
        _at_work.layer = None

    def crop(self, tokens_to_remove):
        if tokens_to_remove:
            raise misused("crop", str(tokens_to_remove), "0: what has left cannot come back")

    def _select(self, indices):
        for x in self.layers:
            x.select(indices)
        self.evictors = [self.evictors[b] and self.evictors[b].copy() for b in indices]
        self.text, self.known = [self.text[b] for b in indices], [self.known[b] for b in indices]

    def reorder_cache(self, beam_idx):
        self._select([int(b) for b in beam_idx])

    batch_select_indices = reorder_cache

    def batch_repeat_interleave(self, repeats):
        self._select([b for b in range(len(self.evictors)) for _ in range(repeats)])
