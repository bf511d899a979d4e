"""One text of several: related memories that fade, turns that are long past."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from meve._formulas import normalize


class Summariser(Protocol):
    """Makes one text of several related ones."""

    def summarise(self, texts: Sequence[str]) -> str:
        """What they say together."""
        ...


class ExtractiveSummariser:
    """The texts nearest to what all of them say, at most three, in their order."""

    def __init__(self, embed: Callable[[Sequence[str]], np.ndarray]) -> None:
        self._embed = embed

    def summarise(self, texts: Sequence[str]) -> str:
        """What they say together."""
        vectors = normalize(self._embed(texts))
        near = vectors @ normalize(vectors.mean(axis=0))
        chosen = sorted(np.argsort(-near, kind="stable")[:3].tolist())
        return " ".join(texts[n].strip() for n in chosen)
