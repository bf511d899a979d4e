"""The paper's keyword search, `rank_bm25.BM25Okapi`, as a reference. It scores every text for every query."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from meve._extras import require_imports
from meve._fork_safety import ForkSafeLock
from meve.components._array_files import Arrays, read_arrays, report_corruption, write_arrays
from meve.components._row_map import check_known_rows, check_new_rows, select_top
from meve.components.lexical.analyzers import Analyzer, analyzer_name, resolve_analyzer, whitespace
from meve.components.lexical.bm25 import check_texts
from meve.errors import IndexCorruptError
from meve.types import FloatArray, RowArray


class RankBm25Index:
    """BM25Okapi as the paper ran it, with the interface of `Bm25Index`; for comparison and small corpora.

    BM25Okapi can't add or remove texts, so it is rebuilt before the first search after a change. Scores can be 0 or
    negative; only texts that share a word with the query are returned. An interrupted change takes effect fully or not
    at all.

    `meve.ports.LexicalIndex` describes the arguments and errors of the methods.

    Args:
        analyzer: splits texts and queries into words.

    Raises:
        MissingExtraError: `rank_bm25` isn't installed (extra `reference`).

    Source: MeVe (Ottem 2025), appendix A.2.
    """

    kind: ClassVar[str] = "rank_bm25"

    def __init__(self, *, analyzer: Analyzer = whitespace) -> None:
        with require_imports("the paper's BM25", {"rank_bm25": "reference"}):
            from rank_bm25 import BM25Okapi
        self._engine = BM25Okapi
        self._analyzer = analyzer
        self._texts: dict[int, list[str]] = {}
        self._built: tuple[RowArray, Any] | None = None
        self._lock = ForkSafeLock()

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, rows: RowArray, texts: Sequence[str]) -> None:
        """Add texts under new row keys; the next search rebuilds the engine and sees them."""
        keys = check_new_rows(rows, self._texts)
        check_texts(len(keys), texts)
        analysed = [list(self._analyzer(text)) for text in texts]
        self._built = None
        self._texts = {**self._texts, **dict(zip(keys.tolist(), analysed, strict=True))}

    def remove(self, rows: RowArray) -> None:
        """Remove these rows; the next search leaves them out."""
        gone = set(check_known_rows(rows, self._texts).tolist())
        self._built = None
        self._texts = {row: text for row, text in self._texts.items() if row not in gone}

    def search(self, text: str, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """Return at most k rows that share a word with `text`, best first; ties go to the smaller row."""
        terms = list(self._analyzer(text))
        rows, engine = self._get_engine()
        if engine is None or not terms:
            return select_top(rows[:0], np.empty(0, dtype=np.float32), 0)
        scores = np.asarray(engine.get_scores(terms), dtype=np.float32)
        wanted = set(terms)
        shares = np.array([not wanted.isdisjoint(frequencies) for frequencies in engine.doc_freqs])
        if allowed is not None:
            shares &= np.isin(rows, allowed)
        return select_top(rows[shares], scores[shares], k)

    def save(self, path: Path) -> None:
        """Write the index to one new file."""
        analysed = json.dumps(list(self._texts.values())).encode()
        arrays: Arrays = {
            "rows": np.array(list(self._texts), dtype=np.int64),
            "words": np.frombuffer(analysed, dtype=np.uint8),
        }
        write_arrays(path, self.kind, {"analyzer": analyzer_name(self._analyzer)}, arrays)

    @classmethod
    def load(cls, path: Path, *, analyzer: Analyzer | None = None) -> Self:
        """Read what `save` wrote; a custom analyzer must be passed in.

        Raises:
            IndexMismatchError: an index of another kind, format or analyzer.
            ConfigurationError: built with a custom analyzer, and none is given.
        """
        header, arrays = read_arrays(path, cls.kind)
        with report_corruption(path):
            index = cls(analyzer=resolve_analyzer(header["analyzer"], analyzer, path))
            analysed = json.loads(arrays["words"].tobytes())
            if len(analysed) != len(arrays["rows"]):
                raise IndexCorruptError(f"{path} is damaged: its texts and row keys don't match")
            index._texts = dict(zip(arrays["rows"].tolist(), analysed, strict=True))
        return index

    def _get_engine(self) -> tuple[RowArray, Any]:
        with self._lock:
            if self._built is None:
                rows = np.array(list(self._texts), dtype=np.int64)
                engine = self._engine(list(self._texts.values())) if any(self._texts.values()) else None
                self._built = rows, engine
            return self._built
