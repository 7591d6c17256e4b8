# SPDX-License-Identifier: Apache-2.0
"""What a transformers model is, as far as the recorder has to know."""
import hashlib

import torch

from . import _lib


def misused(what, found, expected, hint=""):
    return _lib.MisusedError("%s: found %s, expected %s" % (what, found, expected), what, found, expected, hint, 2)


def failed(what, found, hint=""):
    return _lib.ShearsError("%s: %s" % (what, found), what, found, "", hint, 1)


class _NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, out, said, *_):
        ctx.said = said
        return out.view_as(out)

    @staticmethod
    def backward(ctx, *_):
        raise failed(*ctx.said)


def without_gradient(out, given, said):
    """`out`, computed of `given`, through which no gradient passes: asking for one is the error `said`, the arguments of
    failed(), instead of a wrong number."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in given):
        return _NoBackward.apply(out, said, *given)
    return out


def interfaces():
    """What transformers registers attention functions and masks with."""
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
        return AttentionInterface, AttentionMaskInterface, sdpa_mask
    except ImportError as e:
        raise _lib.AbsentError("transformers: %s" % e, "transformers", str(e), "version 4.53 or later",
                               "pip install -U transformers", 3) from None


def configs(model):
    """All configurations that its modules have, each once."""
    found = {}
    for module in model.modules():
        config = getattr(module, "config", None)
        if hasattr(config, "_attn_implementation"):
            found[id(config)] = config
    return list(found.values())


def text_config(config):
    try:
        return config.get_text_config(decoder=True)
    except (AttributeError, TypeError, ValueError):
        return config


def uses_interface(model):
    """Do its layers look their attention function up?"""
    if getattr(model, "_supports_attention_backend", False):
        return True
    can = getattr(type(model), "_can_set_attn_implementation", None)
    return bool(can and can())


def number(config, *names, default=0):
    """The first of these that the configuration has as a number."""
    for name in names:
        value = getattr(config, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return default


def fingerprint(model):
    """The same for the same weights and configuration: of every parameter the shape and a few numbers."""
    h = hashlib.blake2b(digest_size=8)
    config = getattr(model, "config", None)
    if hasattr(config, "to_diff_dict"):
        parts = config.to_diff_dict()
        h.update(repr(sorted((k, str(v)) for k, v in parts.items() if not k.startswith("_") and k != "transformers_version"
                             and "attn_implementation" not in k)).encode())
    for name, p in model.named_parameters():
        h.update(("%s %s" % (name, tuple(p.shape))).encode())
        if p.numel() and p.device.type != "meta":
            flat = p.detach().reshape(-1)
            at = torch.linspace(0, p.numel() - 1, min(8, p.numel()), dtype=torch.float64).long()
            h.update(flat[at.to(flat.device)].float().cpu().numpy().tobytes())
    return int.from_bytes(h.digest(), "little")
