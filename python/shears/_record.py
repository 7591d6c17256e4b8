# SPDX-License-Identifier: Apache-2.0
"""The recorder: `with shears.record(model, "t.db"):` around forward passes or `generate` of a transformers model."""
from __future__ import annotations

import atexit
import inspect
import itertools
import os
import re
import threading
import warnings
import weakref
from typing import Any

import torch

from . import _attend, _lib
from ._attend import Shape, seen_of
from ._model import (configs, failed, fingerprint, interfaces, misused, number, text_config, uses_interface,
                     without_gradient)
from ._passes import Group, Pass, past_of, span
from ._recording import Recording

_numbers = itertools.count(1)
_DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
_CROSS = re.compile(r"cross|encoder_attn|encdecattention", re.I)
_STACK = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|resblocks)\.(\d+)(?:\.|$)")


class record:
    """Records the attention of a transformers model, while it runs, into a store that all of shears reads.

        with shears.record(model, "t.db", record="full", vectors="qkv"):
            model(**tokenizer(text, return_tensors="pt"))

    Each row of a batch is a sequence; padding is left out; generation with a cache continues its sequence. Attention is
    computed by the recorder on the model's own device, a tile at a time, as transformers' eager attention computes it.

    record: "full" (all scores), "sparse" (those above a row's mean) or "summary" (statistics only). codec: "log8" (one
    byte, within 4 %), "f16" or "f32". vectors: any letters of "qkv". attention: which kind to record if a model has
    several: "causal", "bidirectional" (of an encoder) or "cross" (over another sequence). name: the model's name in the
    store.

    Models that do not use transformers' attention interface are recorded from the attention weights that they return
    (output_attentions), all of which are then in memory at once; a warning says so. Needs PyTorch and transformers."""

    def __init__(self, model: Any, path: str | os.PathLike, *, record: str = "full", codec: str = "log8",
                 vectors: str = "", attention: str | None = None, name: str | None = None):
        self.model, self.path = model, os.fspath(path)
        self.record, self.codec, self.vectors, self.attention = record, codec, vectors, attention
        self.name = name
        self.remarks: list[str] = []        # the texts of the warnings
        self.sequences = 0                  # recorded so far
        self._recording = None
        self._local, self._lock = threading.local(), threading.RLock()
        self._groups, self._undo, self._codes, self._places = [], [], {}, itertools.count()
        self._check()

    def _check(self):
        if not isinstance(self.model, torch.nn.Module) or not hasattr(self.model, "config"):
            raise misused("model", type(self.model).__name__, "a model of transformers")
        for what, found, known in (("record", self.record, ("full", "sparse", "summary")),
                                   ("codec", self.codec, ("log8", "f16", "f32")),
                                   ("attention", self.attention, (None, "causal", "bidirectional", "cross"))):
            if found not in known:
                raise misused(what, repr(found), "one of " + ", ".join(str(one) for one in known if one))
        if self.name is not None and not isinstance(self.name, str):
            raise misused("name", repr(self.name), "a string")
        letters = set(self.vectors)
        if not isinstance(self.vectors, str) or len(letters) != len(self.vectors) or letters - set("qkv"):
            raise misused("vectors", repr(self.vectors), "any of q, k, v, each once")
        self._config = text_config(self.model.config)
        self._by_interface = uses_interface(self.model)
        if self.vectors and not self._by_interface:
            raise misused("vectors", repr(self.vectors), "\"\": %s does not use transformers' attention interface, so that "
                          "only its scores can be recorded" % type(self.model).__name__)
        if self.attention is None and getattr(self.model.config, "is_encoder_decoder", False):
            self.attention = "causal"

    # ---- beginning and end ----

    def __enter__(self) -> record:
        if self._recording is not None:
            raise misused("shears.record", "a recording that has begun", "one with block for each")
        busy = [c for c in configs(self.model) if str(c._attn_implementation).startswith("shears_record")]
        if busy:
            raise misused("model", "one that is being recorded", "one recording of a model at a time")
        interfaces()
        self._recording, self._begun, self._pid = Recording(self.path), False, os.getpid()
        self._names = {id(module): name for name, module in self.model.named_modules()}
        try:
            (self._join if self._by_interface else self._stand_by)()
        except BaseException:
            self._leave()
            self._recording.close()
            raise
        own = weakref.ref(self)
        self._at_exit = lambda: own() and own()._end(quietly=True)
        atexit.register(self._at_exit)
        return self

    def __exit__(self, kind, *_):
        self._end(quietly=kind is not None)

    def _end(self, quietly):
        """Every sequence that is complete is kept. quietly: there is another error already."""
        atexit.unregister(self._at_exit)
        self._leave()
        if os.getpid() != self._pid:
            return
        try:
            with self._lock:
                try:
                    for group in self._groups:
                        self._finish(group)
                finally:
                    self._groups = []
                    self._recording.close()
        except _lib.ShearsError:
            if not quietly:
                raise

    def _remark(self, text):
        self.remarks.append(text)
        warnings.warn("shears.record: " + text, stacklevel=4)

    def _set_attention(self, name):
        for config in configs(self.model):
            place = "_attn_implementation_internal" if hasattr(config, "_attn_implementation_internal") \
                else "_attn_implementation"
            if self._by_interface and not self._is_text(config):
                continue
            self._undo.append(lambda config=config, place=place, old=getattr(config, place): setattr(config, place, old))
            setattr(config, place, name)

    def _is_text(self, config):
        """Is it the configuration of what is recorded, or of a vision tower next to it?"""
        return config is self._config or config is self.model.config or \
            getattr(config, "model_type", None) == getattr(self._config, "model_type", "")

    def _hook(self, before, after):
        target = self.model
        if self.attention == "bidirectional" and getattr(self.model.config, "is_encoder_decoder", False):
            target = self.model.get_encoder()
        self._signature = inspect.signature(target.forward)
        hooks = [target.register_forward_pre_hook(before, with_kwargs=True),
                 target.register_forward_hook(after, with_kwargs=True, always_call=True)]
        self._undo += [hook.remove for hook in hooks]

    def _join(self):
        """The recorder's attention function takes the place of the model's."""
        functions, masks, mask = interfaces()
        name = "shears_record_%d" % next(_numbers)
        functions.register(name, self._attend)
        masks.register(name, mask)
        self._undo += [lambda: functions._global_mapping.pop(name, None), lambda: masks._global_mapping.pop(name, None)]
        self._set_attention(name)
        self._hook(self._before, self._after)

    def _stand_by(self):
        self._remark("%s does not use transformers' attention interface: recorded from its output_attentions, which need "
                     "memory for all scores of all layers at a time" % type(self.model).__name__)
        self._set_attention("eager")
        self._hook(self._before_eager, self._after_eager)

    def _leave(self):
        while self._undo:
            self._undo.pop()()

    # ---- a pass ----

    def _bound(self, args, kwargs):
        try:
            bound = self._signature.bind_partial(*args, **kwargs).arguments
        except TypeError:
            return dict(kwargs)             # the model says what is wrong
        return {**bound, **bound.get("kwargs", {})}

    def _begin_pass(self, args, kwargs):
        given = self._bound(args, kwargs)
        is_decoder = getattr(self.model.config, "is_encoder_decoder", False) and self.attention != "bidirectional"
        tokens = given.get("decoder_input_ids" if is_decoder else "input_ids")
        cache = given.get("past_key_values")
        cache = given.get("cache") if cache is None else cache
        wants = given.get("output_attentions")
        wants = getattr(self.model.config, "output_attentions", False) if wants is None else wants
        self._lock.acquire()
        try:
            for group in [g for g in self._groups if g.cache is None or g.cache() is None]:
                self._groups.remove(group)
                self._finish(group)
            self._local.current = Pass(tokens if isinstance(tokens, torch.Tensor) and tokens.ndim == 2 else None, cache,
                                        past_of(cache), bool(wants))
        except BaseException:
            self._lock.release()
            raise
        return given

    def _before(self, module, args, kwargs):
        if getattr(self._local, "current", None) is None:
            self._begin_pass(args, kwargs)

    def _after(self, module, args, kwargs, output):
        """Called after each pass. A pass that failed has no output."""
        current = getattr(self._local, "current", None)
        if current is None:
            return
        self._local.current = None
        try:
            self._end_pass(current, output)
        finally:
            self._lock.release()

    def _end_pass(self, current, output):
        group = current.group
        if group is None:
            if output is not None:
                raise failed(type(self.model).__name__, "no %s attention was recorded in this pass" % (self.attention or ""),
                             "attention=\"causal\", \"bidirectional\" or \"cross\" says which one a model has")
            return
        cache = current.cache
        if cache is None and output is not None:
            get = output.get if hasattr(output, "get") else lambda name: None
            cache = get("past_key_values")
            cache = get("cache") if cache is None else cache
        group.is_whole = group.is_whole and output is not None
        try:
            group.cache = weakref.ref(cache) if cache is not None and group.grows and group.is_whole else None
        except TypeError:
            group.cache = None
        if group.cache is None:
            if group in self._groups:
                self._groups.remove(group)
            self._finish(group)
        elif group not in self._groups:
            self._groups.append(group)

    def _finish(self, group):
        numbers, group.numbers = [n for n in group.numbers if n is not None], []
        for one in numbers:
            self._recording.finish(one, keep=group.is_whole)
            self.sequences += group.is_whole

    # ---- sequences ----

    def _begin_run(self, n_head, n_kv_head, d_head, device, dtype):
        """When the first attention comes: only then are shapes known."""
        c = self._config
        if number(c, "n_recurrent_loops", default=1) > 1:
            raise failed("shears.record", "some layers of this model run several times in a pass",
                         "shears trace records each time as a layer of its own")
        is_encoder = self.attention == "bidirectional"
        layers = ("encoder_layers", "num_encoder_layers") if is_encoder else ("decoder_layers", "num_decoder_layers")
        n_layer = number(c, *layers, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
        if getattr(self.model.config, "is_encoder_decoder", False) and not number(c, *layers):
            n_layer = number(c, *("num_layers",) if is_encoder else ("num_decoder_layers", "num_layers"), default=n_layer)
        where = str(device) if device.type != "cuda" else torch.cuda.get_device_name(device)
        kind = self.attention if self.attention == "causal" else "%s attention of %s" % (self.attention, where)
        source = getattr(self.model.config, "_name_or_path", "") or ""
        said = self._said_heads()
        kv_heads = [kv for _, kv in said] or [n_head // groups for groups in self._all("num_key_value_groups")]
        self._n_head = max([n_head] + [queries for queries, _ in said])
        self._recording.begin(
            model=self.name or os.path.basename(source.rstrip("/")) or type(self.model).__name__,
            family=str(getattr(c, "model_type", "") or type(self.model).__name__), weights="checkpoint",
            fingerprint=fingerprint(self.model), n_layer=n_layer, n_head=self._n_head, n_kv_head=max([n_kv_head] + kv_heads),
            d_head=max([d_head] + self._all("head_dim") + self._all("v_head_dim")),
            d_model=number(c, "hidden_size", "n_embd", "d_model"),
            n_vocab=number(c, "vocab_size"), max_pos=number(c, "max_position_embeddings", "n_positions", "max_seq_len"),
            backend="torch", device=where if self.attention == "causal" else kind, dtype=_DTYPES.get(dtype, "f32"),
            command="record %s" % self.path, attention=self.attention, record=self.record, codec=self.codec,
            vectors=self.vectors)
        self._begun, self._n_layer = True, n_layer

    def _said_heads(self):
        """Query and KV heads of all attention modules that are recorded and say them."""
        found = []
        for module in self.model.modules():
            groups, width = getattr(module, "num_key_value_groups", None), getattr(module, "head_dim", None)
            keys = getattr(getattr(module, "k_proj", None), "out_features", None)
            if "Attention" in type(module).__name__ and self._is_text(getattr(module, "config", None)) and \
                    all(isinstance(n, int) and n > 0 for n in (groups, width, keys)):
                found.append((groups * (keys // width), keys // width))
        return found

    def _all(self, name):
        """Of all attention modules that are recorded: layers differ."""
        found = [getattr(m, name, None) for m in self.model.modules()
                 if "Attention" in type(m).__name__ and self._is_text(getattr(m, "config", None))]
        return [value for value in found if isinstance(value, int) and value > 0]

    def _tokens(self, current, b, rows):
        """Token ids of some rows of a pass; -1 where they are not known."""
        if current.tokens is None or current.tokens.shape[0] <= b or current.tokens.shape[1] <= int(rows.max()):
            return [-1] * len(rows)
        return current.tokens[b, rows.to(current.tokens.device)].tolist()

    def _start(self, current, real):
        """The pass's group: that of its cache, or a new one. real: bool [B, Q], which queries are tokens."""
        if current.past:
            group = next((g for g in self._groups if g.cache is not None and g.cache() is current.cache), None)
            if group is None:
                raise failed("shears.record", "queries continue a cache of %d tokens that was not recorded" % current.past,
                             "begin with an empty cache within the with block")
            if group.columns != current.past or len(group.numbers) != real.shape[0]:
                raise failed("shears.record", "a cache of %d tokens in %d rows continues a recording of %d tokens in %d" % (
                    current.past, real.shape[0], group.columns, len(group.numbers)),
                    "what cuts or reorders a cache (assisted generation, beams) cannot be recorded")
        else:
            for old in [g for g in self._groups if g.cache is not None and g.cache() is current.cache]:
                self._groups.remove(old)            # the cache begins anew
                self._finish(old)
            group = Group([None] * real.shape[0], real[:, :0], self.attention == "causal")
        current.group, current.new = group, []
        before = group.real.sum(1).tolist()
        group.real = torch.cat([group.real, real], 1)
        group.is_whole, was_whole = False, group.is_whole
        for b in range(real.shape[0]):
            rows = real[b].nonzero().flatten()
            current.new.append(rows)
            if not len(rows):
                continue
            tokens = self._tokens(current, b, rows)
            if group.numbers[b] is None:
                group.numbers[b] = self._recording.sequence("record:%d" % next(self._places), tokens, group.grows)
            else:
                self._recording.more(group.numbers[b], tokens)
        current.before = before
        group.is_whole = was_whole
        return group

    # ---- the attention function ----

    def _attend(self, module, query, key, value, attention_mask, scaling=None, dropout=0.0, is_causal=None,
                sliding_window=None, softcap=None, position_bias=None, s_aux=None, sinks=None, **other):
        indices = other.get("indices")
        if indices is not None and indices.shape[-1] >= key.shape[2]:
            other["indices"] = None                 # an index that chooses all keys, as in short texts
        blocks, size = other.get("block_indices"), getattr(getattr(module, "indexer", None), "block_size", 0)
        if blocks is not None and blocks.shape[-1] * size >= key.shape[2]:
            other["block_indices"] = None           # the same of blocks of keys
        given = sorted(name for name in ("indices", "block_indices", "head_mask") if other.get(name) is not None)
        if given:
            raise failed(self._names.get(id(module), type(module).__name__),
                         "its attention takes %s, which the recorder does not know" % ", ".join(given))
        current = getattr(self._local, "current", None)
        role = self._role(module, is_causal)
        n_key, n_query = key.shape[2], query.shape[2]
        if current is None and self._is_recorded(role):
            raise failed("shears.record", "attention outside of a forward pass of %s" % type(self.model).__name__,
                         "record the module that is called, such as model.model")
        past = current.past if current and role == "causal" else n_key - n_query if role == "causal" else 0
        shape = Shape(
            scaling=query.shape[-1] ** -0.5 if scaling is None else float(scaling), past=past,
            offset=max(0, past + n_query - n_key), causal=role == "causal", softcap=softcap,
            dropout=dropout if module.training else 0.0, mask=attention_mask, bias=position_bias,
            sinks=s_aux if s_aux is not None else sinks)
        if shape.mask is not None and shape.mask.shape[-1] > n_key:
            shape.mask = shape.mask[..., :n_key]
        layer = None
        with torch.no_grad():
            if current is not None and self._is_recorded(role) and current.reads_again(query, key):
                if "v" in self.vectors:
                    raise failed("layer %d" % self._layer_of(module), "it attends twice, to two halves of its values",
                                 "record with vectors=\"qk\"")
            elif current is not None and self._is_recorded(role):
                layer = self._enter_layer(current, module, query, key, value, shape, sliding_window)
                self._keep_vectors(current, module, layer, query, key, value, shape)
            kept = [] if current is not None and current.wants_weights else None

            def take(tile):
                if kept is not None:
                    kept.append(tile)
                if layer is not None:
                    self._take(current, layer, shape, tile)
            out = _attend.attend(query, key, value, shape, take)
            weights = self._weights(kept, query, n_key) if kept is not None else None
        return without_gradient(out, (query, key, value), ("shears.record", "gradients were asked for while attention is "
                                "recorded", "train outside of the with block, or record under torch.no_grad()")), weights

    @staticmethod
    def _weights(tiles, query, n_key):
        """All of them at once, for a caller who asked the model for them."""
        all_ = torch.zeros((*query.shape[:3], n_key), dtype=query.dtype, device=query.device)
        for t in tiles:
            all_[t.batch, :, t.first:t.last, t.begin:t.end] = t.scores
        return all_

    def _role(self, module, is_causal):
        name = self._names.get(id(module), "")
        if getattr(module, "is_cross_attention", False) or _CROSS.search(type(module).__name__) or \
                _CROSS.search(name.rsplit(".", 1)[-1]):
            return "cross"
        is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        return "causal" if is_causal else "bidirectional"

    def _is_recorded(self, role):
        if self.attention is None:
            self.attention = role
        return role == self.attention

    def _layer_of(self, module):
        index = getattr(module, "layer_idx", None)
        is_number = isinstance(index, int) and not isinstance(index, bool)
        if is_number and index >= 0:
            return index
        found = _STACK.search(self._names.get(id(module), ""))
        if not found or is_number:              # a block that several layers share has a number below 0
            raise failed(self._names.get(id(module), type(module).__name__), "it does not say which layer it is of")
        return int(found.group(1))

    def _window_of(self, module, layer, sliding_window, has_mask):
        window = sliding_window if sliding_window is not None else getattr(module, "sliding_window", None)
        kinds = getattr(self._config, "layer_types", None)
        kind = kinds[layer] if isinstance(kinds, (list, tuple)) and layer < len(kinds) else None
        if kind == "chunked_attention":
            window = getattr(self._config, "attention_chunk_size", None)
        elif window is None and kind == "sliding_attention":
            window = getattr(self._config, "sliding_window", None)
        is_full = kind == "full_attention" and (sliding_window is None or not has_mask)     # the mask decides
        return window if isinstance(window, int) and window > 0 and not is_full else 0

    def _enter_layer(self, current, module, query, key, value, s, sliding_window):
        """The number of the layer, whose rows can come now."""
        layer = self._layer_of(module)
        n_key, n_query = key.shape[2], query.shape[2]
        if not self._begun:
            self._begin_run(query.shape[1], key.shape[1], query.shape[3], query.device, query.dtype)
        if query.shape[1] > self._n_head:
            raise failed("layer %d" % layer, "found %d query heads, expected at most the %d of the layers before" % (
                query.shape[1], self._n_head), "its modules do not say how many query heads they have")
        seen = seen_of(s.mask) if s.mask is not None else None
        if current.group is None:
            self._start(current, self._real(s, seen, query, n_key))
        group = current.group
        if s.causal:
            s.window = self._checked_window(s, seen, self._window_of(module, layer, sliding_window, seen is not None),
                                            n_query, n_key)
            if group.probe is None or group.probe[0] == layer:
                self._probe(group, layer, key, s, n_query)
        else:
            self._note_keys(current, layer, seen, query.shape[0], n_key)
        return layer

    def _keep_vectors(self, current, module, layer, query, key, value, s):
        """Queries are stored before scaling: some models (OPT, Whisper) hand them over after it."""
        scaling = getattr(module, "scaling", None)
        if s.scaling == 1 and isinstance(scaling, float) and scaling > 0:
            query = query / scaling
        for kind in self.vectors:
            self._put_vectors(current, layer, kind, {"q": query, "k": key, "v": value}[kind], s)

    def _real(self, s, seen, query, n_key):
        """bool [B, Q]: a query of a token sees itself; one of padding does not."""
        n_batch, n_query = query.shape[0], query.shape[2]
        if seen is None or self.attention == "cross":
            return torch.ones((n_batch, n_query), dtype=torch.bool)
        rows = torch.arange(n_query, device=seen.device)
        columns = rows + (s.past - s.offset if s.causal else 0)
        own = seen[:, :, rows, columns].any(1) if s.causal else seen.any(1).any(1)
        return own.expand(n_batch, -1).cpu()

    def _checked_window(self, s, seen, window, n_query, n_key):
        """The window, if the mask agrees. A mask that lets a query see later keys is not causal."""
        if seen is None:
            return window
        query = torch.arange(n_query, device=seen.device)[:, None] + s.past
        key = torch.arange(n_key, device=seen.device)[None] + s.offset
        for b in range(seen.shape[0]):
            one = seen[b].any(0)
            if bool((one & (key > query)).any()):
                raise failed("shears.record", "a query sees keys after it: a mask that is neither causal nor of an encoder",
                             "a store has rows that see all keys up to their own, or the same keys all")
            if window and bool((one & (query - key >= window)).any()):
                window = 0
        return window

    def _probe(self, group, layer, key, s, n_query):
        """The last key of each row, to find out whether the cache still has the rows in this order."""
        if group.probe is not None and s.past:
            old, at = group.probe[1], s.past - 1 - s.offset
            now = key[:, :, at].float() if at >= 0 else None
            if now is not None and old.shape == now.shape and old.shape[0] > 1:
                far = torch.cdist(now.flatten(1), old.flatten(1))
                if bool((far.diagonal() > far.min(1).values + 1e-3).any()):
                    raise failed("shears.record", "the rows of the cache are in another order (beams)",
                                 "generate with num_beams=1")
        group.probe = layer, key[:, :, s.past + n_query - 1 - s.offset].float().clone()

    def _note_keys(self, current, layer, seen, n_batch, n_key):
        """Of attention that is not causal: the columns that any query sees."""
        for b in range(n_batch):
            if seen is None:
                current.keys[b] = torch.ones(n_key, dtype=torch.bool)
            else:
                current.keys[b] = seen[b if seen.shape[0] > 1 else 0].any(0).any(0).cpu()

    def _put_vectors(self, current, layer, kind, tensor, s):
        for b, rows in enumerate(current.new):
            if not len(rows):
                continue
            at = rows + (s.past - s.offset if kind != "q" else 0)
            own = tensor[b].index_select(1, at.to(tensor.device)).float().cpu().contiguous()
            heads, n, width = own.shape
            self._recording.vectors(sequence=current.group.numbers[b], layer=layer, kind=kind, n_head=heads, n_row=n,
                                    width=width, at=own.data_ptr())

    # ---- tiles ----

    def _select(self, tensor, rows, columns):
        """Some rows and columns of [heads, rows, keys]; either is a slice or an index."""
        tensor = tensor[:, rows] if isinstance(rows, slice) else tensor.index_select(1, rows.to(tensor.device))
        if columns is None:
            return tensor
        return tensor[:, :, columns] if isinstance(columns, slice) else tensor.index_select(2, columns.to(tensor.device))

    def _take(self, current, layer, s, tile):
        """The rows of a tile that are tokens, over the columns that are, to the library."""
        new = current.new[tile.batch]
        here = (new >= tile.first) & (new < tile.last)
        if not bool(here.any()):
            return
        rows = new[here] - tile.first
        place = int((new < tile.first).sum()) + current.before[tile.batch]
        real = current.group.real[tile.batch] if s.causal else current.keys[tile.batch]
        first, last = (s.offset + tile.begin, s.offset + tile.end) if s.causal else (tile.begin, tile.end)
        columns, has_gaps = real[first:last], False
        found = span(columns)
        if found is None:
            pick, has_gaps = columns.nonzero().flatten(), s.window > 0
        else:
            pick = None if found == (0, last - first) else slice(*found)
        found = span(torch.zeros(tile.last - tile.first, dtype=torch.bool).index_fill_(0, rows, True))
        pick_rows = slice(*found) if found else rows
        n_key = int(columns.sum())
        first_key = int(real[:first].sum())
        if has_gaps:
            raise failed("shears.record", "padding between the tokens of a sequence, in a layer with a window",
                         "pad on the left")
        self._put_rows(current, layer, tile, pick_rows, pick,
                       dict(sequence=current.group.numbers[tile.batch], layer=layer, first_row=place, n_row=len(rows),
                            first_key=first_key, n_key=n_key, window=s.window if s.causal else -n_key))

    def _put_rows(self, current, layer, tile, rows, columns, where):
        device = tile.scores.device
        scores = self._select(tile.scores, rows, columns)
        where, sink = dict(where, n_head=scores.shape[0]), None
        if tile.sink is not None:
            sink = self._select(tile.sink[..., None], rows, None)[..., 0].float().cpu().contiguous()
        codes = logits = None
        if self.record == "full" and self.codec == "log8":
            logits = self._select(tile.logits, rows, columns)
            if device.type != "cpu":
                codes = self._log8(scores, logits, where)
                logits = None
            else:
                logits = logits.contiguous()
        if codes is None:
            scores = scores.cpu().contiguous()
        self._recording.rows(**where, score=None if codes is not None else scores.data_ptr(),
                             logit=None if logits is None else logits.data_ptr(),
                             log8=None if codes is None else codes.data_ptr(),
                             sink=None if sink is None else sink.data_ptr())

    def _log8(self, scores, logits, where):
        """Codes made on the device, here as bytes."""
        window, first, n = where["window"], where["first_row"], where["n_row"]
        lengths = [-window if window < 0 else min(t + 1, window) if window else t + 1 for t in range(first, first + n)]
        known = self._codes.setdefault(scores.device, _attend.Codes(scores.device))
        if not bool(torch.isfinite(scores.sum())):
            raise failed("layer %d, rows from %d on" % (where["layer"], first), "found scores that are not numbers")
        return _attend.log8(scores, logits, lengths, known).cpu().contiguous()

    # ---- models that bypass the interface ----

    def _before_eager(self, module, args, kwargs):
        if getattr(self._local, "current", None) is not None:
            return None
        given = self._begin_pass(args, kwargs)
        self._local.mask = given.get("attention_mask")
        self._local.returns = given.get("return_dict")
        return args, dict(kwargs, output_attentions=True, return_dict=True)

    def _after_eager(self, module, args, kwargs, output):
        current = getattr(self._local, "current", None)
        if current is None:
            return None
        self._local.current = None
        try:
            if output is not None:
                self._take_all(current, output)
            self._end_pass(current, output)
        finally:
            self._lock.release()
        if output is None:
            return None
        if not current.wants_weights:
            output = type(output)(**{k: v for k, v in output.items() if "attentions" not in k})
        return output.to_tuple() if self._local.returns is False else output

    def _take_all(self, current, output):
        names = {"cross": ("cross_attentions",), "bidirectional": ("encoder_attentions", "attentions"),
                 "causal": ("decoder_attentions", "attentions"), None: ("attentions",)}[self.attention]
        all_ = next((output[n] for n in names if output.get(n) is not None), None)
        if all_ is None:
            raise failed(type(self.model).__name__, "it returned no attention (output_attentions)",
                         "only models that return it, or use transformers' attention interface, can be recorded")
        for layer, weights in enumerate(all_):
            if weights is None:
                continue                        # it does not attend
            if weights.ndim != 4:
                raise failed("layer %d" % layer, "found attention of %d dimensions, expected [batch, heads, queries, keys]"
                             % weights.ndim)
            self._take_layer(current, layer, weights.detach().float())

    def _take_layer(self, current, layer, weights):
        n_batch, n_head, n_query, n_key = weights.shape
        mask = self._local.mask
        is_2d = isinstance(mask, torch.Tensor) and mask.ndim == 2 and mask.shape[-1] >= n_key
        seen = mask[:, -n_key:].bool().cpu() if is_2d else torch.ones((n_batch, n_key), dtype=torch.bool)
        if self.attention is None:              # queries of padding may see anything
            later = torch.ones(n_query, n_key, dtype=torch.bool).triu(1 + n_key - n_query)
            looks = (weights > 0).any(1).cpu() & later & seen[:, -n_query:, None]
            self.attention = "bidirectional" if bool(looks.any()) else "causal"
        causal = self.attention == "causal"
        if not self._begun:
            width = number(self._config, "head_dim", default=number(self._config, "hidden_size", "n_embd") // n_head or 1)
            kv = number(self._config, "num_kv_heads", "num_key_value_heads", default=n_head)
            kv = 1 if getattr(self._config, "multi_query", False) and not getattr(
                self._config, "new_decoder_architecture", False) else kv
            self._begin_run(n_head, kv if n_head % kv == 0 else n_head, width, weights.device,
                            getattr(self.model, "dtype", torch.float32))
        if current.group is None:
            own = torch.ones((n_batch, n_query), dtype=torch.bool) if self.attention == "cross" else seen[:, -n_query:]
            self._start(current, own)
        s = Shape(1.0, current.past, max(0, current.past + n_query - n_key), causal)
        current.keys = dict(enumerate(seen))
        for b in range(n_batch):
            self._take(current, layer, s, _attend.Tile(b, 0, n_query, 0, n_key, weights[b], weights[b].log(), None))
