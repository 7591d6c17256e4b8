"""What is measured while training, on a small held-out set of each kind."""

import torch
from torch.nn import functional as F

import batches
from recall import Shape

N_ROWS = 24
SHAPES = {"recall_160": Shape(160, (3, 6)), "recall_512": Shape(512, (4, 10), (1, 3), (0.5, 0.85))}


def held_out_rows(tokenizer, bible_path):
    """{kind: [(row, weights, is_answer), ...]}, the same at every call."""
    source = batches.Source(tokenizer, bible_path, held_out=True, seed=7)
    rows = {"natural": [source.natural_row(512) for _ in range(N_ROWS)]}
    for kind, shape in SHAPES.items():
        rows[kind] = [source.recall_row(shape) for _ in range(N_ROWS)]
    return rows


@torch.no_grad()
def measure(model, rows_by_kind):
    """Loss per token of each kind, and the share of right answer tokens."""
    found = {}
    for kind, rows in rows_by_kind.items():
        row_tokens, _, is_answer = (torch.tensor(part) for part in zip(*rows))
        logits = model(row_tokens[:, :-1])
        targets = row_tokens[:, 1:]
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        found[f"{kind}_loss"] = round(loss.item(), 3)
        if is_answer.any():
            right = (logits.argmax(-1) == targets)[is_answer].float().mean()
            found[f"{kind}_right"] = round(right.item(), 3)
    return found
