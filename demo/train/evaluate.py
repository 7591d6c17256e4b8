"""Measures an exported model folder on the held-out texts.

    evaluate.py --model ../model --text ../text

Prints the loss of each kind of text, and how many recall questions are answered
right - every token of the answer the arg max, the document before it given - by
the distance to where the answer was said last.  The same once more with a plain
local window in place of the full cache: what forgetting costs.
"""

import argparse
import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn import functional as F

from model import OPT

CONTEXT = 512
DISTANCES = (64, 128, 192, 256, 320, 384, CONTEXT)


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    model = OPT(config)
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return model.eval(), Tokenizer.from_file(str(folder / "tokenizer.json"))


def local_window(length, window):
    """Each token sees itself and the `window - 1` before it."""
    distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    return (distance >= 0) & (distance < window)


@torch.no_grad()
def losses_and_guesses(model, ids, window):
    """Per token after the first: its loss, and whether it was the arg max."""
    row = torch.tensor([ids])
    mask = local_window(len(ids) - 1, window) if window else None
    logits = model(row[:, :-1], mask=mask)[0]
    targets = row[0, 1:]
    return F.cross_entropy(logits, targets, reduction="none"), logits.argmax(-1) == targets


def natural_losses(model, tokenizer, text, window):
    """Every token of the chapters, each chapter cut into full contexts."""
    losses = []
    for chapter in text.split("\n\n"):
        ids = tokenizer.encode(chapter, add_special_tokens=False).ids
        end = tokenizer.token_to_id("</s>")
        for start in range(0, len(ids), CONTEXT):
            row = [end] + ids[start : start + CONTEXT]
            losses.append(losses_and_guesses(model, row, window)[0])
    return torch.cat(losses)


def recall_answers(model, tokenizer, records, window):
    """(losses of all tokens, [(distance in tokens, answered right), ...])"""
    losses, answers = [], []
    for record in records:
        encoding = tokenizer.encode(record["text"])
        found, right = losses_and_guesses(model, encoding.ids, window)
        losses.append(found)
        starts = [start for start, _ in encoding.offsets]
        for question in record["questions"]:
            at = question["at"]
            token_at = [i for i, start in enumerate(starts) if i and start >= at]
            answer = [i for i in token_at if starts[i] < at + len(question["answer"])]
            said = next(i for i, start in enumerate(starts) if i and start >= question["said_at"])
            answers.append((answer[0] - said, all(right[i - 1] for i in answer)))
    return torch.cat(losses), answers


def by_distance(answers):
    low = 0
    for high in DISTANCES:
        right = [ok for distance, ok in answers if low <= distance < high]
        if right:
            yield low, high, sum(right), len(right)
        low = high


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--window", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model, tokenizer = load(Path(arguments.model))
    natural = (Path(arguments.text) / "natural.txt").read_text()
    lines = (Path(arguments.text) / "recall.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    bar = math.log(model.config["vocab_size"]) / 2
    print(f"half of ln(vocabulary): {bar:.3f} nats a token")
    for window in [None, *arguments.window]:
        print(f"local window of {window}:" if window else "full cache:")
        of_natural = natural_losses(model, tokenizer, natural, window)
        of_recall, answers = recall_answers(model, tokenizer, records, window)
        both = torch.cat([of_natural, of_recall])
        print(f"  natural loss {of_natural.mean():.3f} ({len(of_natural)} tokens)")
        print(f"  recall loss  {of_recall.mean():.3f} ({len(of_recall)} tokens)")
        print(f"  both         {both.mean():.3f}")
        n_right = sum(ok for _, ok in answers)
        print(f"  recall right {n_right / len(answers):.1%} of {len(answers)} questions")
        for low, high, right, n in by_distance(answers):
            print(f"    {low:3d}-{high - 1:3d} tokens back: {right / n:.1%} of {n}")


if __name__ == "__main__":
    main()
