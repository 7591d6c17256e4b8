"""The curriculum: dense recall in short rows first, then distance and text.

A stage is left when its answers are right often enough; the later ones go on
rehearsing the earlier.
"""

from dataclasses import dataclass

from recall import Shape


@dataclass(frozen=True)
class Stage:
    name: str
    shape: Shape
    rows: int
    natural: float  # shares of the rows
    recall: float
    noise: float = 0.0
    enough: float = 1.0  # share of right answer tokens that ends the stage


STAGES = (
    Stage("copy", Shape(96, facts=(2, 4)), 24, natural=0.1, recall=0.5, noise=0.4, enough=0.85),
    Stage("dense", Shape(160, facts=(2, 6)), 16, natural=0.2, recall=0.75, noise=0.05, enough=0.93),
    Stage("spread", Shape(256, (2, 8), (1, 2), (0.0, 0.6)), 12, natural=0.4, recall=0.6, enough=0.93),
    Stage("long", Shape(512, (3, 10), (1, 3), (0.2, 0.8)), 8, natural=0.6, recall=0.4, enough=0.95),
    Stage("full", Shape(1024, (3, 14), (1, 3), (0.3, 0.9)), 4, natural=0.6, recall=0.4),
)


def choose(rng, reached):
    """The stage of the next batch: mostly the one reached, at times an earlier."""
    if reached == len(STAGES) - 1:
        return rng.choices(range(len(STAGES)), (0, 3, 7, 60, 30))[0]
    if reached >= 2 and rng.random() < 0.2:
        return rng.randint(1, reached - 1)
    return reached
