"""What a saved retriever consists of: which files hold what, and how they're read back."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meve.calibration import calibration_from_dict
from meve.clock import Clock, SystemClock
from meve.config import RetrieverConfig
from meve.corpus import Corpus, Entry
from meve.errors import IndexCorruptError, IndexMismatchError, ValidationError
from meve.ports import Calibration, DenseIndex, Embedder, LexicalIndex, TokenCounter, Verifier
from meve.snapshot import Writer, read_snapshot, write_snapshot
from meve.types import Passage
from meve.version import __version__

PASSAGES, EXTRA = "passages.jsonl", "extra.json"

AGREEMENT = 0.99
"""The least cosine between a stored vector and the one that the embedder at hand makes of the same passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """An index as it was read from disk, its models still to be found."""

    corpus: Corpus
    config: RetrieverConfig
    embedder: str
    dimension: int
    verifier: str
    calibration: Calibration
    tokens: str
    extra: dict[str, Any] = field(default_factory=dict)


def save_corpus(
    path: Path,
    corpus: Corpus,
    *,
    config: RetrieverConfig,
    embedder: Embedder,
    verifier: Verifier,
    tokens: TokenCounter,
    extra: Mapping[str, Any],
    clock: Clock | None = None,
) -> None:
    """Write a corpus and the names of its models, atomically.

    Raises:
        StorageError: as `write_snapshot`; what was there before is kept.
    """
    kind = corpus.lexical_kinds[0]
    about = {
        "meve": __version__,
        "created": (clock or SystemClock()).now().isoformat(),
        "passages": len(corpus),
        "next_row": corpus.next_row,
        "embedder": {"name": embedder.name, "dimension": embedder.dimension, "similarity": embedder.similarity},
        "verifier": {"name": verifier.name, "calibration": verifier.calibration.to_dict()},
        "tokens": {"name": tokens.name},
        "dense": {"kind": corpus.dense.kind},
        "lexical": {"kind": kind},
        "config": config.to_dict(),
    }
    writers: dict[str, Writer] = {
        PASSAGES: lambda file: _write_passages(file, corpus.entries),
        f"dense.{corpus.dense.kind}": corpus.dense.save,
        f"lexical.{kind}": corpus.primary_lexical.save,
        EXTRA: lambda file: _write_json(file, extra),
    }
    write_snapshot(path, writers, about)


def load_corpus(
    path: Path,
    dense_class: Callable[[str], type[DenseIndex]],
    lexical_class: Callable[[str], type[LexicalIndex]],
) -> Saved:
    """Read what `save_corpus` wrote, checked whole.

    Args:
        path: the index's folder.
        dense_class: from a kind to the class that reads it.
        lexical_class: the same for the keyword index.

    Raises:
        StorageError: as `read_snapshot`.
        IndexCorruptError: files that don't fit together.
    """

    def read(folder: Path, about: dict[str, Any]) -> Saved:
        try:
            return _read(folder, about, dense_class, lexical_class)
        except (KeyError, TypeError, ValueError) as cause:
            raise IndexCorruptError(f"the index at {path} can't be read ({cause!r}): index the texts again") from cause

    return read_snapshot(path, read)


def _read(
    folder: Path,
    about: Mapping[str, Any],
    dense_class: Callable[[str], type[DenseIndex]],
    lexical_class: Callable[[str], type[LexicalIndex]],
) -> Saved:
    dense = dense_class(about["dense"]["kind"]).load(folder / f"dense.{about['dense']['kind']}")
    lexical = lexical_class(about["lexical"]["kind"]).load(folder / f"lexical.{about['lexical']['kind']}")
    entries = dict(_read_passages(folder / PASSAGES))
    if not len(dense) == len(lexical) == len(entries) == about["passages"]:
        raise IndexCorruptError(
            f"{folder} holds {len(entries)} passages, {len(dense)} vectors and {len(lexical)} word lists, where "
            f"{about['passages']} were saved: index the texts again"
        )
    corpus = Corpus(dense=dense, lexical=lexical, entries=entries)
    corpus.next_row = max(corpus.next_row, int(about["next_row"]))
    return Saved(
        corpus=corpus,
        config=RetrieverConfig.from_dict(about["config"]),
        embedder=about["embedder"]["name"],
        dimension=about["embedder"]["dimension"],
        verifier=about["verifier"]["name"],
        calibration=calibration_from_dict(about["verifier"]["calibration"]),
        tokens=about["tokens"]["name"],
        extra=json.loads((folder / EXTRA).read_text(encoding="utf-8")),
    )


def check_embedder(path: Path, saved: Saved, embedder: Embedder) -> None:
    """Make sure that an embedder is the one that an index was made with: by name, dimension, and by trying it.

    Raises:
        IndexMismatchError: another model, or the same name over other weights.
    """
    if (embedder.name, embedder.dimension) != (saved.embedder, saved.dimension):
        raise IndexMismatchError(
            f"the index at {path} was made with embedder {saved.embedder!r} of {saved.dimension} dimensions, "
            f"not {embedder.name!r} of {embedder.dimension}: give that one, or index the texts again"
        )
    row = min(saved.corpus.entries, default=None)
    if row is None:
        return
    stored = saved.corpus.dense.vectors(np.asarray([row], dtype=np.int64))[0]
    made = np.asarray(embedder.embed_passages([saved.corpus.entries[row].passage.content])[0], dtype=np.float32)
    norms = float(np.linalg.norm(stored) * np.linalg.norm(made))
    if made.shape != stored.shape or (norms > 0 and float(stored @ made) / norms < AGREEMENT):
        raise IndexMismatchError(
            f"embedder {embedder.name!r} makes other vectors than those in the index at {path}: its weights have "
            "changed; give the old ones, or index the texts again"
        )


def _write_passages(file: Path, entries: Mapping[int, Entry]) -> None:
    with file.open("w", encoding="utf-8") as out:
        for row in sorted(entries):
            p = entries[row].passage
            line = {"row": row, "id": p.id, "tokens": entries[row].tokens, "title": p.title, "text": p.text}
            out.write(json.dumps({**line, "metadata": dict(p.metadata)}, ensure_ascii=False) + "\n")


def _read_passages(file: Path) -> Iterator[tuple[int, Entry]]:
    with file.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            data = json.loads(line)
            passage = Passage(id=data["id"], title=data["title"], text=data["text"], metadata=data["metadata"])
            yield data["row"], Entry(passage=passage, tokens=data["tokens"])


def _write_json(file: Path, data: Mapping[str, Any]) -> None:
    try:
        file.write_text(json.dumps(dict(data), ensure_ascii=False, allow_nan=False), encoding="utf-8")
    except (TypeError, ValueError) as cause:
        raise ValidationError(f"extra data can't be saved as JSON: {cause}") from cause
