"""The curriculum: copying, then recall in short rows, then distance and text.

Copying is learnt first, from repeated noise over few tokens: there the step from
"something said before" to "what came after this before" takes a few hundred steps,
while in a mixture of facts and noise over the whole vocabulary it had not come
after 900.

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
    natural: float = 0.0  # the shares of the rows of each kind
    recall: float = 0.0
    repeated: float = 0.0
    shuffled: float = 0.0
    enough: float = 1.0  # share of right answer tokens that ends the stage
    alphabet: int = 1500  # of the noise
    periods: tuple = (4, 24)  # tokens before the noise repeats


SAYINGS = (3, 2, 5)  # facts and lists are learnt in the short stages, sayings late
LONG = Shape(512, (3, 10), (1, 3), (0.2, 0.8), SAYINGS)
FULL = Shape(1024, (3, 14), (1, 3), (0.3, 0.9), SAYINGS)

STAGES = (
    Stage("letters", Shape(48), 24, repeated=1, enough=0.85, alphabet=64, periods=(4, 16)),
    Stage("noise", Shape(64), 24, recall=0.3, repeated=0.7, enough=0.8, alphabet=500),
    Stage("copy", Shape(96, (2, 4)), 20, 0.1, 0.7, 0.2, enough=0.85),
    Stage("dense", Shape(160, (2, 6)), 16, 0.2, 0.75, 0.05, enough=0.92),
    Stage("spread", Shape(256, (2, 8), (1, 2), (0.0, 0.6)), 16, 0.4, 0.6, enough=0.92),
    Stage("long", LONG, 8, 0.6, 0.35, 0.05, enough=0.88, periods=(8, 200)),
    Stage("full", FULL, 4, 0.65, 0.35, enough=0.78),
    Stage("quote", Shape(256, (2, 8), (1, 2), (0.0, 0.5), (2, 1, 7)), 16, 0.3, 0.3, 0.1, 0.3),
)
DENSE = 3  # from the stage after this one on, earlier stages are rehearsed


def choose(rng, reached):
    """The stage of the next batch: mostly the one reached, at times an earlier."""
    if reached == len(STAGES) - 1:
        return reached - rng.choices((0, 1, 2, 3, 4), (35, 15, 40, 5, 5))[0]
    if reached > DENSE and rng.random() < 0.2:
        return rng.randint(DENSE, reached - 1)
    return reached
