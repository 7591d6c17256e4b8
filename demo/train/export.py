"""Puts the trained weights into the model folder, as f16.

    export.py --work DIR --model ../model

May be run while training goes on: it takes the state saved last.
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file


def save_half(weights, path):
    half = {name: tensor.half().contiguous() for name, tensor in weights.items()}
    save_file(half, path, metadata={"format": "pt"})
    path.chmod(0o644)  # safetensors leaves it readable by its owner alone


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", required=True)
    parser.add_argument("--model", required=True)
    arguments = parser.parse_args()
    state = torch.load(Path(arguments.work) / "state.pt", weights_only=True)
    path = Path(arguments.model) / "model.safetensors"
    save_half(state["average"], path)
    print(f"{path}: {state['tokens']} tokens seen, {state['seconds'] / 60:.0f} minutes")


if __name__ == "__main__":
    main()
