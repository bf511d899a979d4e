"""In which order pairs are learned from: shuffled with a seed, pairs of like length side by side."""

import random
from collections.abc import Sequence

MEGA = 50
"""So many batches are sorted by length together: little padding, and still mixed."""


def in_order(lengths: Sequence[int], *, batch_size: int, epochs: int, seed: int) -> list[int]:
    """Row numbers of all passes, one after the other; the same arguments give the same order.

    Args:
        lengths: of each row, in any unit, shape (n,).
        batch_size: rows learned from at once; each batch holds rows of like length, and batches come in random order.
        epochs: how many passes.
        seed: of the shuffles; every pass has an order of its own.

    >>> in_order([9, 1, 8, 2], batch_size=2, epochs=1, seed=0) in ([0, 2, 3, 1], [3, 1, 0, 2])
    True
    """
    made: list[int] = []
    for epoch in range(epochs):
        rng = random.Random(f"{seed}/{epoch}")
        rows = rng.sample(range(len(lengths)), len(lengths))
        batches = []
        for start in range(0, len(rows), MEGA * batch_size):
            block = sorted(rows[start : start + MEGA * batch_size], key=lambda row: -lengths[row])
            batches += [block[at : at + batch_size] for at in range(0, len(block), batch_size)]
        ragged = [batch for batch in batches if len(batch) < batch_size]
        batches = [batch for batch in batches if len(batch) == batch_size]
        rng.shuffle(batches)
        made += [row for batch in (*batches, *ragged) for row in batch]
    return made
