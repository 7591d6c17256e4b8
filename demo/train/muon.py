"""Muon: momentum whose update is orthogonalised, for the 2-D hidden matrices.

Written out in float32 and batched over equal shapes, because torch's own
iterates in bfloat16, which is slow on CPUs without matrix units.
"""

import math

import torch


def orthogonalise(g, steps=5):
    """Newton-Schulz: [n, r, c] matrices with singular values near 1."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = g.shape[-2] > g.shape[-1]
    x = (g.mT if tall else g).contiguous()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters, lr, momentum=0.95):
        by_shape = {}
        for parameter in parameters:
            by_shape.setdefault(parameter.shape, []).append(parameter)
        groups = [{"params": same} for same in by_shape.values()]
        super().__init__(groups, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            momentum = group["momentum"]
            directions = []
            for parameter in group["params"]:
                state = self.state[parameter]
                if "mean" not in state:
                    state["mean"] = torch.zeros_like(parameter)
                mean = state["mean"].lerp_(parameter.grad, 1 - momentum)
                directions.append(parameter.grad.lerp(mean, momentum))
            rows, columns = directions[0].shape
            scale = group["lr"] * math.sqrt(max(1, rows / columns))
            for parameter, update in zip(group["params"], orthogonalise(torch.stack(directions))):
                parameter.sub_(update, alpha=scale)
