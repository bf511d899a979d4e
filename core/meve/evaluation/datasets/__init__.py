"""Readers of public evaluation sets, and of the project's own: questions over passages."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from meve.errors import DatasetError
from meve.evaluation.datasets.beir import read_nfcorpus, read_scifact
from meve.evaluation.datasets.qa import read_own, read_qa
from meve.evaluation.datasets.rgb import read_rgb
from meve.evaluation.datasets.wikipedia import ARTICLES, read_articles, read_wikipedia, train_sentence_splitter
from meve.evaluation.types import EvaluationSet

__all__ = [
    "ARTICLES",
    "SETS",
    "read_articles",
    "read_own",
    "read_set",
    "read_wikipedia",
    "train_sentence_splitter",
]

SETS: Mapping[str, Callable[[Path], EvaluationSet]] = MappingProxyType(
    {
        "hotpotqa": partial(read_qa, "hotpotqa"),
        "2wiki": partial(read_qa, "2wiki"),
        "musique": partial(read_qa, "musique"),
        "nq_open": partial(read_qa, "nq_open"),
        "nfcorpus": read_nfcorpus,
        "scifact": read_scifact,
        "hotpotqa_fullwiki": partial(read_qa, "hotpotqa_fullwiki"),
        "rgb": read_rgb,
    }
)
"""The reader of each public set, from the folder with all of them."""


def read_set(name: str, root: Path) -> EvaluationSet:
    """Return a set.

    Args:
        name: one of `SETS`, or `own` for the set that comes with the package.
        root: the folder with a folder for each set.

    Raises:
        DatasetError: an unknown name; or the set is absent, truncated, of another format, or inconsistent.
    """
    if name == "own":
        return read_own()
    if name not in SETS:
        raise DatasetError(f"unknown set {name!r}: choose from {', '.join((*SETS, 'own'))}")
    return SETS[name](root)
