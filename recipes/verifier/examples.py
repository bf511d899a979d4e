"""The examples of the verifier: a query, a passage, and whether the passage is relevant."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from meve.types import LabelledPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A labelled (query, passage) pair with its set, kind and part."""

    query: str
    passage: str
    relevant: bool
    set: str
    kind: str
    """`paragraph`, `sentence`, `second hop`, `unanswerable`, `statement`, …"""
    part: str
    """`train`, `dev` or `test`."""
    target: float | None = None
    """The probability to be learned; None for the label."""

    @classmethod
    def read(cls, file: Path) -> list[Self]:
        """Read all examples of a file."""
        with file.open(encoding="utf-8", newline="\n") as lines:
            return [cls(**json.loads(line)) for line in lines]


def pair_of(example: Example) -> LabelledPair:
    """Return the labelled pair for training and evaluation."""
    return LabelledPair(query=example.query, passage=example.passage, relevant=example.relevant)


def write(examples: Iterable[Example], file: Path) -> None:
    """Write one example per line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(asdict(e), ensure_ascii=False) + "\n" for e in examples), "utf-8")
