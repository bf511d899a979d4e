"""Readers of public evaluation sets, and of the project's own: questions over passages."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from meve.errors import DatasetError
from meve.evaluation.datasets._sentence_splitter import train_sentence_splitter
from meve.evaluation.datasets.beir import read_nfcorpus, read_scifact
from meve.evaluation.datasets.own import read_own
from meve.evaluation.datasets.qa import (
    read_2wiki,
    read_hotpotqa,
    read_hotpotqa_fullwiki,
    read_musique,
    read_nq_open,
)
from meve.evaluation.datasets.rgb import read_rgb
from meve.evaluation.datasets.wikipedia import ARTICLES, Article, read_articles, read_wikipedia
from meve.evaluation.types import EvaluationSet

__all__ = [
    "ARTICLES",
    "SETS",
    "Article",
    "read_articles",
    "read_own",
    "read_set",
    "read_wikipedia",
    "train_sentence_splitter",
]

SETS: Mapping[str, Callable[[Path], EvaluationSet]] = MappingProxyType(
    {
        "hotpotqa": read_hotpotqa,
        "2wiki": read_2wiki,
        "musique": read_musique,
        "nq_open": read_nq_open,
        "nfcorpus": read_nfcorpus,
        "scifact": read_scifact,
        "hotpotqa_fullwiki": read_hotpotqa_fullwiki,
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
