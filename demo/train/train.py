"""Trains the demo model; stop it (SIGTERM) and run it again with the same --work to
go on.

    train.py --bible kjv.txt --model ../model --work DIR --tokens 60e6

Writes into DIR: log.jsonl (one line a measurement), state.pt (to resume from)
and checkpoints/*.safetensors (f16, at doubling token counts, for the figure of
what training does).
"""

import argparse
import json
import os
import random
import signal
import time
from pathlib import Path

import torch
from torch.nn import functional as F
from tokenizers import Tokenizer

import batches
import muon
import stages
from export import save_half
from measure import held_out_rows, measure
from model import OPT, initialise

SAVE_EVERY_SECONDS = 120
AVERAGE_DECAY = 0.995  # of the weight average that is measured and exported
ACCURACY_MEMORY = 0.97  # of the running accuracy that ends a stage


def optimisers(model):
    """Muon for the hidden matrices, AdamW for everything else."""
    layers = model.model.decoder.layers
    hidden = [p for p in layers.parameters() if p.ndim == 2]
    small = [p for p in model.parameters() if p.ndim == 1]
    decoder = model.model.decoder
    return [
        muon.Muon(hidden, lr=0.02),
        torch.optim.AdamW(
            [
                {"params": [decoder.embed_tokens.weight], "lr": 3e-3},
                {"params": [decoder.embed_positions.weight], "lr": 1e-3},
                {"params": small, "lr": 2e-3},
            ],
            betas=(0.9, 0.95),
            weight_decay=0.0,
        ),
    ]


class Run:
    """Everything that a resumed run needs."""

    def __init__(self, arguments, config, tokenizer):
        self.work = Path(arguments.work)
        self.total = arguments.tokens
        self.decay_share = arguments.decay
        self.config = config
        torch.manual_seed(arguments.seed)
        self.model = OPT(config)
        initialise(self.model)
        self.average = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.optimisers = optimisers(self.model)
        self.base_rates = [[g["lr"] for g in o.param_groups] for o in self.optimisers]
        self.tokens = 0
        self.steps = 0
        self.seconds = 0.0
        self.reached = 0
        self.accuracy = 0.0
        (self.work / "checkpoints").mkdir(parents=True, exist_ok=True)
        if (self.work / "state.pt").exists():
            self.load()
        self.source = batches.Source(
            tokenizer, arguments.bible, held_out=False, seed=arguments.seed + self.steps
        )
        self.rng = random.Random(self.steps)
        self.held_out = held_out_rows(tokenizer, arguments.bible)

    STATE = ("average", "tokens", "steps", "seconds", "reached", "accuracy")

    def save(self):
        state = {name: getattr(self, name) for name in self.STATE}
        state["model"] = self.model.state_dict()
        state["optimisers"] = [o.state_dict() for o in self.optimisers]
        torch.save(state, self.work / "state.tmp")
        os.replace(self.work / "state.tmp", self.work / "state.pt")

    def load(self):
        state = torch.load(self.work / "state.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(saved)
        for name in self.STATE:
            setattr(self, name, state[name])

    def rate(self):
        """Warm-up, plateau, and a straight way down over the last share."""
        warm = min(1.0, (self.steps + 1) / 60)
        left = (self.total - self.tokens) / (self.decay_share * self.total)
        return max(0.02, min(warm, left))

    def step(self):
        rate = self.rate()
        for optimiser, base in zip(self.optimisers, self.base_rates):
            for group, lr in zip(optimiser.param_groups, base):
                group["lr"] = lr * rate
        chosen = stages.choose(self.rng, self.reached)
        tokens, weights, is_answer = self.source.batch(stages.STAGES[chosen])
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        logits = self.model(inputs, self.first_positions(inputs))
        losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        weights = weights.flatten()
        loss = (losses * weights).sum() / weights.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        self.steps += 1
        self.tokens += inputs.numel()
        self.update_average()
        if chosen == self.reached and is_answer.any():
            right = (logits.argmax(-1) == targets)[is_answer].float().mean().item()
            self.accuracy = ACCURACY_MEMORY * self.accuracy + (1 - ACCURACY_MEMORY) * right
        return loss.item()

    def first_positions(self, inputs):
        """Half of the rows begin at 0, as in use; the others anywhere."""
        rows, length = inputs.shape
        free = self.config["max_position_embeddings"] - length
        return torch.randint(0, free + 1, (rows,)) * torch.randint(0, 2, (rows,))

    @torch.no_grad()
    def update_average(self):
        decay = min(AVERAGE_DECAY, (1 + self.steps) / (10 + self.steps))
        for name, value in self.model.state_dict().items():
            self.average[name].lerp_(value, 1 - decay)

    def advance(self):
        if self.reached + 1 < len(stages.STAGES):
            if self.accuracy >= stages.STAGES[self.reached].enough:
                name = stages.STAGES[self.reached].name
                print(f"{self.tokens} tokens: stage {name} left", flush=True)
                self.reached += 1
                self.accuracy = 0.0

    def checkpoint(self):
        name = f"tokens-{self.tokens:09d}.safetensors"
        save_half(self.average, self.work / "checkpoints" / name)

    def report(self, loss):
        averaged = OPT(self.config)
        averaged.load_state_dict(self.average)
        line = {
            "tokens": self.tokens,
            "steps": self.steps,
            "seconds": round(self.seconds),
            "stage": stages.STAGES[self.reached].name,
            "train_loss": round(loss, 3),
            "train_accuracy": round(self.accuracy, 3),
            "rate": round(self.rate(), 3),
            **measure(averaged, self.held_out),
        }
        with open(self.work / "log.jsonl", "a") as log:
            log.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def train(run, measure_every):
    next_checkpoint = 0 if run.tokens == 0 else 500_000
    while next_checkpoint and next_checkpoint <= run.tokens:
        next_checkpoint *= 2
    next_measure = run.tokens
    last_save = time.monotonic()
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    loss, started = 0.0, time.monotonic()
    while run.tokens < run.total and not stopped:
        if run.tokens >= next_checkpoint:
            run.checkpoint()
            next_checkpoint = max(500_000, next_checkpoint * 2)
        if run.tokens >= next_measure:
            run.report(loss)
            next_measure += measure_every
        loss = run.step()
        run.advance()
        run.seconds += time.monotonic() - started
        started = time.monotonic()
        if started - last_save > SAVE_EVERY_SECONDS:
            run.save()
            last_save = started
    if not stopped:
        run.checkpoint()
        run.report(loss)
    run.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bible", required=True)
    parser.add_argument("--model", required=True, help="folder with config.json, tokenizer.json")
    parser.add_argument("--work", required=True)
    parser.add_argument("--tokens", type=float, required=True)
    parser.add_argument("--decay", type=float, default=0.25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measure-every", type=float, default=250_000)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    folder = Path(arguments.model)
    config = json.loads((folder / "config.json").read_text())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    train(Run(arguments, config, tokenizer), arguments.measure_every)


if __name__ == "__main__":
    main()
