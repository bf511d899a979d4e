"""Save a retriever as files and read it back."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from meve._formulas import cosines
from meve._json_limits import NESTING, is_nested_deeper, parse_json
from meve._vectors import validate_vectors
from meve._version import __version__
from meve.calibration.probability_maps import calibration_from_dict
from meve.components._shipped_models import find_fitted_models
from meve.components.embedders import are_prompts, find_prompts, resolve_embedder
from meve.components.evidence import EvidenceModel
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import VerifierLike, resolve_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import (
    IndexCorruptError,
    IndexMismatchError,
    ModelError,
    PassageError,
    StorageError,
    ValidationError,
    wrap_errors,
)
from meve.pipeline._preparation import find_problem
from meve.pipeline.config import RetrieverConfig, Settings, validate_config
from meve.pipeline.engine import Engine, TokenCounterLike
from meve.ports import Calibration, DenseIndex, Embedder, LexicalIndex, TokenCounter, Verifier
from meve.retrieval._corpus import Corpus, StoredPassage
from meve.retrieval._snapshot import SnapshotWriter, read_snapshot, write_snapshot
from meve.types import FloatArray, Passage

logger = logging.getLogger("meve.retrieval")

PASSAGES, EXTRA = "passages.jsonl", "extra.json"

RESERVED_PREFIX = "meve."
"""The prefix of MeVe's own names in the extra data."""
_MAX_NUMBER = 1 << 62
MIN_COSINE = 0.99
"""The least cosine between a stored vector and the given embedder's vector of the same passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedIndex:
    """An index read from disk, with the names of its models."""

    corpus: Corpus
    config: RetrieverConfig
    embedder: str
    dimension: int
    verifier: str
    calibration: Calibration
    tokens: str
    generation: str
    prompts: dict[str, str] = field(default_factory=dict)
    """The prompts that the embedder was given."""
    max_length: int | None = None
    """The `max_length` that the cross-encoder was given."""
    evidence: EvidenceModel | None = None
    """The evidence model that was calibrated for this index."""
    extra: dict[str, Any] = field(default_factory=dict)


def save_corpus(
    path: Path, corpus: Corpus, engine: Engine, *, extra: Mapping[str, Any], replacing: str | None = None
) -> str:
    """Write a corpus and the names of its models atomically, and return the name of the new generation.

    Raises:
        StorageError: as `write_snapshot`; what was there before is kept.
    """
    embedder, verifier, evidence = engine.embedder, engine.verifier, engine.evidence
    kind = corpus.lexical_kinds[0]
    about = {
        "meve": __version__,
        "created": engine.clock.now().isoformat(),
        "passages": len(corpus),
        "next_row": corpus.next_row,
        "next_id": corpus.next_id,
        "embedder": {
            "name": embedder.name,
            "dimension": embedder.dimension,
            "similarity": embedder.similarity,
            "prompts": find_prompts(embedder),
        },
        "verifier": {
            "name": verifier.name,
            "calibration": verifier.calibration.to_dict(),
            "max_length": verifier.max_length if isinstance(verifier, CrossEncoderVerifier) else None,
        },
        "evidence": evidence.to_dict() if isinstance(evidence, EvidenceModel) else None,
        "tokens": {"name": engine.tokens.name},
        "dense": {"kind": corpus.dense.kind},
        "lexical": {"kind": kind},
        "config": engine.config.to_dict(),
    }
    writers: dict[str, SnapshotWriter] = {
        PASSAGES: lambda file: _write_passages(file, corpus.entries),
        f"dense.{corpus.dense.kind}": corpus.dense.save,
        f"lexical.{kind}": corpus.primary_lexical.save,
        EXTRA: lambda file: _write_json(file, extra),
    }
    return write_snapshot(path, writers, about, replacing=replacing)


def load_corpus(
    path: Path,
    dense: Callable[[str, Path], DenseIndex],
    lexical: Callable[[str, Path], LexicalIndex],
) -> SavedIndex:
    """Read and check what `save_corpus` wrote.

    Args:
        path: the index's folder.
        dense: reads a dense index of that kind from that file.
        lexical: reads a keyword index of that kind from that file.

    Raises:
        StorageError: as `read_snapshot`.
        IndexCorruptError: files that contradict each other.
    """
    return read_snapshot(path, partial(_read, dense, lexical))


def _read(
    read_dense: Callable[[str, Path], DenseIndex],
    read_lexical: Callable[[str, Path], LexicalIndex],
    folder: Path,
    about: Mapping[str, Any],
) -> SavedIndex:
    kinds = {part: str(about[part]["kind"]) for part in ("dense", "lexical")}
    names = {part: f"{part}.{kind}" for part, kind in kinds.items()}
    unchecked = [name for name in (*names.values(), PASSAGES, EXTRA) if name not in about["files"]]
    if unchecked:
        raise IndexCorruptError(f"the manifest of {folder.parent} lacks {unchecked[0]!r}: index the texts again")
    dense = read_dense(kinds["dense"], folder / names["dense"])
    lexical = read_lexical(kinds["lexical"], folder / names["lexical"])
    entries = dict(_read_passages(folder / PASSAGES))
    if not len(dense) == len(lexical) == len(entries) == about["passages"]:
        raise IndexCorruptError(
            f"{folder} holds {len(entries)} passages, {len(dense)} vectors and {len(lexical)} word lists, where "
            f"{about['passages']} were saved: index the texts again"
        )
    corpus = Corpus(dense=dense, lexical=lexical, entries=entries)
    corpus.next_row = max(corpus.next_row, _check_number(about["next_row"], "next_row"))
    corpus.next_id = max(corpus.next_row, _check_number(about["next_id"], "next_id"))
    for part in ("embedder", "verifier", "tokens"):
        check_name(about[part]["name"], part)
    max_length = about["verifier"].get("max_length")
    if not are_prompts(prompts := about["embedder"].get("prompts", {})):
        raise IndexCorruptError(
            f"the prompts of an index must be texts by the name of the argument, got {prompts!r:.80}"
        )
    return SavedIndex(
        corpus=corpus,
        config=RetrieverConfig.from_dict(about["config"]),
        embedder=about["embedder"]["name"],
        dimension=about["embedder"]["dimension"],
        prompts=prompts,
        verifier=about["verifier"]["name"],
        max_length=None if max_length is None else _check_number(max_length, "the verifier's max_length"),
        calibration=calibration_from_dict(about["verifier"]["calibration"]),
        tokens=about["tokens"]["name"],
        generation=about["generation"],
        evidence=EvidenceModel.from_dict(about["evidence"]) if about.get("evidence") else None,
        extra=parse_json((folder / EXTRA).read_bytes()),
    )


def _check_number(value: object, name: str) -> int:
    """Return a row number or count; numbers that leave no room for more rows are refused."""
    if type(value) is not int or not 0 <= value < _MAX_NUMBER:
        raise IndexCorruptError(f"{name} in an index must be an integer from 0 to {_MAX_NUMBER - 1}, got {value!r:.80}")
    return value


def check_name(name: object, part: str) -> None:
    """Check that a name in a manifest is one, and no address of another machine."""
    if not isinstance(name, str) or name.startswith(("\\\\", "//")) or "://" in name:
        raise IndexCorruptError(f"the {part} of an index must be a model's name or folder, got {name!r:.80}")


def load_engine(
    path: Path,
    saved: SavedIndex,
    *,
    config: RetrieverConfig | None = None,
    embedder: Embedder | str | None = None,
    verifier: VerifierLike | None = None,
    tokens: TokenCounterLike | None = None,
    **settings: Unpack[Settings],
) -> Engine:
    """Build the engine that an index was saved with, except for the given components.

    Models that only the index names are never downloaded: they ship with MeVe, or are on this machine.

    Raises:
        IndexMismatchError: an embedder that makes other vectors, or a tokenizer of another name.
        ModelError: a model or a tokenizer that isn't available.
    """
    own_embedder = (
        resolve_embedder(saved.embedder, local_files_only=True, prompts=saved.prompts)
        if embedder is None
        else resolve_embedder(embedder)
    )
    check_embedder(path, saved, own_embedder)
    judge = (
        resolve_verifier(saved.verifier, own_embedder, max_length=saved.max_length, local_files_only=True)
        if verifier is None
        else resolve_verifier(verifier, own_embedder)
    )
    is_object = verifier is not None and not isinstance(verifier, str)
    if judge.name == saved.verifier and _is_calibrated_by(saved.calibration, judge, is_object=is_object):
        judge = judge.with_calibration(saved.calibration)
    counter = resolve_tokens(saved.tokens if tokens is None else tokens, local_files_only=tokens is None)
    check_tokens_name(f"the index at {path}", saved.tokens, counter)
    own_config, evidence = saved.config.override(tokens=None), saved.evidence  # the counter is that of the index
    if evidence is not None and _is_of_other_weights(evidence, judge, own_embedder):
        logger.warning(
            "the index at %s was calibrated with another version of %s, so its calibration and threshold don't count: "
            "call calibrate again, and save", path, evidence.name,
        )  # fmt: skip
        own_config, evidence = own_config.override(threshold=RetrieverConfig().threshold), None
    chosen = validate_config(config or own_config).override(**settings)
    return Engine(embedder=own_embedder, verifier=judge, tokens=counter, config=chosen, evidence=evidence)


def _is_of_other_weights(saved: EvidenceModel, judge: Verifier, embedder: Embedder) -> bool:
    """Return whether an evidence model is an earlier version of the one that ships now for both models."""
    shipped = find_fitted_models(judge.name, judge.calibration.to_dict(), embedder.name).evidence
    return shipped is not None and shipped.name == saved.name and shipped.fits != saved.fits


def _is_calibrated_by(saved: Calibration, judge: Verifier, *, is_object: bool) -> bool:
    """Return whether an index's calibration counts instead of the verifier's own.

    An object takes one that `calibrate` fitted for the index, unless it has a fitted one. A model by name keeps its own
    if that is of the same pairs, since it may be newer than the index.
    """
    was, now = saved.to_dict(), judge.calibration.to_dict()
    if is_object:
        return bool(was.get("pairs")) and not was.get("fitted_on") and not now.get("pairs")  # a model's is named
    return not was.get("fitted_on") or was["fitted_on"] != now.get("fitted_on")


def check_embedder(path: Path, saved: SavedIndex, embedder: Embedder) -> None:
    """Check that an embedder makes the vectors of an index: by name, by dimension, and on one passage.

    Raises:
        IndexMismatchError: another model, or other weights under the same name.
    """
    index = f"the index at {path}"
    check_embedder_name(index, saved.embedder, saved.dimension, embedder)
    row = min(saved.corpus.entries, default=None)
    if row is not None:
        stored = saved.corpus.dense.vectors(np.asarray([row], dtype=np.int64))[0]
        check_weights(index, saved.corpus.entries[row].passage.content, stored, embedder)


def check_embedder_name(index: str, name: str, dimension: int, embedder: Embedder) -> None:
    """Check that an embedder has the name and the dimension of the one that made an index.

    Raises:
        IndexMismatchError: another model.
    """
    if (embedder.name, embedder.dimension) != (name, dimension):
        raise IndexMismatchError(
            f"{index} was made with embedder {name!r} of {dimension} dimensions, "
            f"not {embedder.name!r} of {embedder.dimension}: give that one, or index the texts again"
        )


def check_weights(index: str, content: str, stored: FloatArray, embedder: Embedder) -> None:
    """Check that an embedder makes the stored vector, shape (d,), of a passage's content.

    Raises:
        IndexMismatchError: it has other weights.
        ModelError: the embedder failed.
    """
    with wrap_errors(ModelError, f"embedding a passage with {embedder.name!r}"):
        vectors = embedder.embed_passages([content])
    fresh = validate_vectors(vectors, (1, embedder.dimension), f"embedder {embedder.name!r}")
    if stored.any() and fresh.any() and float(cosines(stored, fresh)[0]) < MIN_COSINE:
        raise IndexMismatchError(
            f"embedder {embedder.name!r} has other weights than when it made {index}: give the old ones, "
            "or index the texts again"
        )


def check_tokens_name(index: str, name: str, counter: TokenCounter) -> None:
    """Check that a token counter has the name of the one that counted an index.

    Raises:
        IndexMismatchError: another one.
    """
    if counter.name != name:
        raise IndexMismatchError(
            f"{index} counted its tokens with {name!r}, not {counter.name!r}: "
            f"give that one, or override it for a call with tokens={counter.name!r}"
        )


def _write_passages(file: Path, entries: Mapping[int, StoredPassage]) -> None:
    with file.open("w", encoding="utf-8") as out:
        for row in sorted(entries):
            p = entries[row].passage
            if type(p) is not Passage and p.prompt_text != p.content:
                raise PassageError(
                    f"passage {p.id!r} can't be saved: models are sent another text of it than embedders (in "
                    "LlamaIndex, by excluded metadata keys), and an index keeps one; exclude the same keys from both, "
                    "or make the retriever of the nodes again; nothing was written"
                )
            line = {"row": row, "id": p.id, "tokens": entries[row].tokens, "title": p.title, "text": p.text}
            try:
                out.write(
                    json.dumps({**line, "metadata": dict(p.metadata)}, ensure_ascii=False, allow_nan=False) + "\n"
                )
            except (TypeError, ValueError) as cause:
                raise PassageError(f"metadata of passage {p.id!r} must be JSON data to be saved: {cause}") from cause


def _read_passages(file: Path) -> Iterator[tuple[int, StoredPassage]]:
    with file.open(encoding="utf-8", newline="\n") as lines:
        for n, line in enumerate(lines):
            data = parse_json(line)
            passage = Passage(id=data["id"], title=data["title"], text=data["text"], metadata=data["metadata"])
            if problem := find_problem(n, passage):
                raise IndexCorruptError(f"{PASSAGES} of an index: {problem}")
            tokens = _check_number(data["tokens"], "tokens")
            yield _check_number(data["row"], "row"), StoredPassage(passage=passage, tokens=tokens)


def _write_json(file: Path, data: Mapping[str, Any]) -> None:
    try:
        if not isinstance(data, Mapping):
            raise TypeError(f"expected a mapping, got {type(data).__name__}")
        if is_nested_deeper(data, NESTING):
            raise ValueError(f"nested more than {NESTING} levels deep")
        file.write_text(json.dumps(dict(data), ensure_ascii=False, allow_nan=False), encoding="utf-8")
    except (TypeError, ValueError) as cause:
        raise ValidationError(f"extra must be JSON data: {cause}") from cause


def merge_extra(own: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the extra data to save: what is given, or else an index's own, with MeVe's own names in either case.

    Raises:
        ValidationError: no mapping.
    """
    if given is None:
        return dict(own)
    if not isinstance(given, Mapping):
        raise ValidationError(f"extra must be a mapping from names to JSON data, got {type(given).__name__}")
    return {**{name: data for name, data in own.items() if str(name).startswith(RESERVED_PREFIX)}, **given}


def resolve_folder(path: str | Path) -> Path:
    """Return the absolute path of an index.

    Raises:
        StorageError: it names no folder.
    """
    try:
        return Path(path).resolve()
    except (TypeError, ValueError, OSError, RuntimeError) as cause:
        raise StorageError(f"path must name a folder for the index, got {path!r:.200}: {cause}") from cause
