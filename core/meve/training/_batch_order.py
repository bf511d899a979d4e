"""The order of training pairs: shuffled with a seed, pairs of similar length in one batch."""

import random
from collections.abc import Sequence

MEGA = 50
"""The number of batches sorted by length together, which saves padding and still mixes the pairs."""


def order_batches(lengths: Sequence[int], *, batch_size: int, epochs: int, seed: int) -> list[int]:
    """Return the row numbers of all epochs, one after the other; deterministic.

    Args:
        lengths: the length of each row, in any unit, shape (n,).
        batch_size: rows per batch; each batch holds rows of similar length, and batches come in random order.
        epochs: the number of passes.
        seed: the seed of the shuffles; every epoch is shuffled anew.

    >>> order_batches([9, 1, 8, 2], batch_size=2, epochs=1, seed=0) in ([0, 2, 3, 1], [3, 1, 0, 2])
    True
    """
    order: list[int] = []
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
        order += [row for batch in (*batches, *ragged) for row in batch]
    return order
