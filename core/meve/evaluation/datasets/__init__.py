"""Public sets, and the project's own, as questions over passages."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from meve.errors import DatasetError
from meve.evaluation.datasets.beir import nfcorpus, scifact
from meve.evaluation.datasets.own import own
from meve.evaluation.datasets.qa import hotpotqa, hotpotqa_fullwiki, musique, nq_open, two_wiki
from meve.evaluation.datasets.rgb import rgb
from meve.evaluation.datasets.sentences import punkt
from meve.evaluation.datasets.wikipedia import ARTICLES, Article, read_articles, wikipedia
from meve.evaluation.types import EvaluationSet

__all__ = ["ARTICLES", "SETS", "Article", "own", "punkt", "read_articles", "read_set", "wikipedia"]

SETS: Mapping[str, Callable[[Path], EvaluationSet]] = MappingProxyType(
    {
        "hotpotqa": hotpotqa,
        "2wiki": two_wiki,
        "musique": musique,
        "nq_open": nq_open,
        "nfcorpus": nfcorpus,
        "scifact": scifact,
        "hotpotqa_fullwiki": hotpotqa_fullwiki,
        "rgb": rgb,
    }
)
"""How each public set is read from the folder that holds them all."""


def read_set(name: str, root: Path) -> EvaluationSet:
    """A public set.

    Args:
        name: one of `SETS`, or `own` for the set that comes with the package.
        root: the folder that holds a folder for each set.

    Raises:
        DatasetError: no set of that name is known; or it is absent, cut short, of another format, or at odds with
            itself.
    """
    if name == "own":
        return own()
    if name not in SETS:
        raise DatasetError(f"no set is called {name!r}: there are {', '.join((*SETS, 'own'))}")
    return SETS[name](root)
