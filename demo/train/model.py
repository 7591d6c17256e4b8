"""OPT as transformers' OPTForCausalLM computes it, with the same tensor names.

Pre-LN blocks, ReLU, biases everywhere, learned positions stored two rows late,
the head tied to the token embedding.  Only what the demo's configuration uses.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

POSITION_OFFSET = 2  # OPT keeps two unused rows in front of position 0


class Attention(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = (
            proj(x).view(batch, length, self.n_heads, -1).transpose(1, 2)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.out_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, n_heads, ffn_width):
        super().__init__()
        self.self_attn = Attention(width, n_heads)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, ffn_width)
        self.fc2 = nn.Linear(ffn_width, width)
        self.final_layer_norm = nn.LayerNorm(width)

    def forward(self, x, mask):
        x = x + self.self_attn(self.self_attn_layer_norm(x), mask)
        return x + self.fc2(F.relu(self.fc1(self.final_layer_norm(x))))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["hidden_size"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.embed_positions = nn.Embedding(
            config["max_position_embeddings"] + POSITION_OFFSET, width
        )
        self.layers = nn.ModuleList(
            Layer(width, config["num_attention_heads"], config["ffn_dim"])
            for _ in range(config["num_hidden_layers"])
        )
        self.final_layer_norm = nn.LayerNorm(width)


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.decoder = Decoder(config)


class OPT(nn.Module):
    """`OPT(config).state_dict()` has exactly the tensors of a hub OPT folder."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = Model(config)

    def forward(self, tokens, first_position=None, mask=None):
        """Logits [batch, length, vocabulary].  `first_position` [batch] shifts
        each row's positions, so that short rows can train every position.
        `mask` [length, length] replaces the causal mask: true where a query
        (row) may look at a key (column)."""
        decoder = self.model.decoder
        positions = torch.arange(tokens.shape[1]) + POSITION_OFFSET
        if first_position is not None:
            positions = positions + first_position[:, None]
        x = decoder.embed_tokens(tokens) + decoder.embed_positions(positions)
        for layer in decoder.layers:
            x = layer(x, mask)
        return decoder.final_layer_norm(x) @ decoder.embed_tokens.weight.T


EMBEDDING_SCALE = 0.5


def initialise(model):
    """A start from which recall is learnt in minutes rather than hours.

    Positions start as sinusoids: a fixed distance is then a fixed rotation, so
    a head that looks one token back works at every position at once.  Tokens
    and positions start as large as what the layers will add to them, so that
    late layers still see them; a small last gain keeps the tied head's logits
    small all the same.
    """
    decoder = model.model.decoder
    width = model.config["hidden_size"]
    positions = sinusoids(decoder.embed_positions.weight.shape[0], width)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".bias"):
                parameter.zero_()
            elif "_proj" in name or ".fc" in name:
                parameter.normal_(0, 1 / math.sqrt(parameter.shape[1]))
        for layer in decoder.layers:
            layer.self_attn.out_proj.weight.mul_(0.2)
            layer.fc2.weight.mul_(0.2)
        decoder.embed_tokens.weight.normal_(0, EMBEDDING_SCALE)
        decoder.embed_positions.weight.copy_(positions * math.sqrt(2) * EMBEDDING_SCALE)
        decoder.final_layer_norm.weight.fill_(1 / (EMBEDDING_SCALE * math.sqrt(width)))


def sinusoids(n_positions, width, longest=2000.0):
    """[n_positions, width]: two thirds of the waves evenly spaced in frequency,
    which tells neighbours apart, the rest from 20 to `longest` tokens long."""
    n_waves = width // 2
    n_long = n_waves // 3
    even = torch.linspace(0.05, 3.0, n_waves - n_long)
    lengths = 20 * (longest / 20) ** (torch.arange(n_long) / (n_long - 1))
    frequencies = torch.cat([even, 2 * math.pi / lengths])
    angles = torch.arange(n_positions)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)
