# SPDX-License-Identifier: Apache-2.0
"""The passes of a model that is recorded, and the sequences that go through it together."""
import weakref


class Group:
    """The rows of one batch. real: bool [B, columns], which columns are tokens and not padding."""

    def __init__(self, numbers, real, grows):
        self.numbers, self.real, self.grows = numbers, real, grows
        self.cache = None               # a weak reference to the cache that its next queries come with
        self.probe = None               # (layer, keys [B, KV heads, d] of the last column)
        self.is_whole = True            # every pass of it ended

    @property
    def columns(self):
        return self.real.shape[1]


class Pass:
    """One forward pass of the model."""

    def __init__(self, tokens, cache, past, wants_weights):
        self.tokens, self.cache, self.past, self.wants_weights = tokens, cache, past, wants_weights
        self.group = None
        self.new = self.before = None   # per sequence: which queries of this pass are tokens; how many there were before
        self._read = None               # weak references to the last queries and keys
        self.keys = {}                  # of attention that is not causal: which columns are seen, by batch row

    def reads_again(self, query, key):
        """Whether these very queries and keys were the last ones: a layer that attends twice, to two halves of its values."""
        before = self._read
        self._read = weakref.ref(query), weakref.ref(key)
        return before is not None and before[0]() is query and before[1]() is key


def past_of(cache):
    """How many tokens a cache has seen."""
    if cache is None:
        return 0
    if isinstance(cache, (tuple, list)):
        return int(cache[0][0].shape[-2]) if len(cache) and cache[0] is not None else 0
    cache = getattr(cache, "self_attention_cache", cache)
    most = 0
    for layer in getattr(cache, "layers", None) or ():
        try:
            most = max(most, int(layer.get_seq_length()))
        except (AttributeError, NotImplementedError, TypeError, ValueError):
            continue                    # of a layer that does not attend
    if most == 0:
        try:
            most = int(cache.get_seq_length())
        except (AttributeError, NotImplementedError, TypeError, ValueError, IndexError):
            most = 0
    return most


def span(real):
    """(first, last) of the True ones if nothing else is between them, else None; real: bool [columns]."""
    at = real.nonzero().flatten()
    if not len(at):
        return 0, 0
    first, last = int(at[0]), int(at[-1]) + 1
    return (first, last) if last - first == len(at) else None
