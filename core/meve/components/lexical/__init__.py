"""Lexical (keyword) indexes: `bm25` is the default inverted index, `rank_bm25` the paper's reference."""

from typing import TYPE_CHECKING, get_args

from meve.errors import ConfigurationError
from meve.ports import LexicalIndex
from meve.types import LexicalKind

if TYPE_CHECKING:
    from meve.components.lexical.bm25 import Bm25Index
    from meve.components.lexical.rank_bm25 import RankBm25Index

__all__ = ["lexical_class", "make_lexical"]


def make_lexical(kind: LexicalKind | LexicalIndex) -> LexicalIndex:
    """Return an empty index of this kind, or the ready-made index itself.

    Raises:
        ConfigurationError: an unknown kind.
        MissingExtraError: `rank_bm25` isn't installed.
    """
    return lexical_class(kind)() if isinstance(kind, str) else kind


def lexical_class(kind: str) -> "type[Bm25Index] | type[RankBm25Index]":
    """Return the index class of a kind, `bm25` or `rank_bm25`; its `load` reads saved indexes.

    Raises:
        ConfigurationError: an unknown kind.
    """
    from meve.components.lexical.bm25 import Bm25Index
    from meve.components.lexical.rank_bm25 import RankBm25Index

    for index in (Bm25Index, RankBm25Index):
        if kind == index.kind:
            return index
    raise ConfigurationError(f"lexical index must be one of {', '.join(get_args(LexicalKind))}, got {kind!r}")
