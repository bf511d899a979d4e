"""The paper's keyword search, `rank_bm25.BM25Okapi`: the reference. Scores every text for every query."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from meve.components._array_files import Arrays, corrupt, read_arrays, write_arrays
from meve.components._row_ids import best, free_rows, known_rows
from meve.components.lexical.analyzers import Analyzer, analyzer_name, analyzer_of, whitespace
from meve.components.lexical.bm25 import check_texts
from meve.errors import IndexCorruptError, missing_extra
from meve.types import FloatArray, RowArray


class RankBm25Index:
    """BM25Okapi as the paper ran it, behind the same door as `Bm25Index`; for comparison, and for small corpora.

    It can't take in or forget a text, so that it is built anew before the first search after a change. Its scores can
    be 0 or negative; texts that share a word with the query come back nevertheless, and others never do. Whatever
    interrupts an add or a removal, it's made as a whole or not at all.

    Args:
        analyzer: turns texts and queries into words.

    Raises:
        MissingExtraError: `rank_bm25` isn't installed (extra `reference`).

    Source: MeVe (Ottem 2025), appendix A.2.
    """

    kind: ClassVar[str] = "rank_bm25"

    def __init__(self, *, analyzer: Analyzer = whitespace) -> None:
        try:
            from rank_bm25 import BM25Okapi
        except ImportError:
            raise missing_extra("rank_bm25", "reference", "the paper's BM25") from None
        self._engine = BM25Okapi
        self._analyzer = analyzer
        self._texts: dict[int, list[str]] = {}
        self._built: tuple[RowArray, Any] | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many texts it holds."""
        return len(self._texts)

    def add(self, rows: RowArray, texts: Sequence[str]) -> None:
        """Take in texts under new row keys; the very next search sees them, after building anew.

        Raises:
            DuplicateIdError: a row key that is taken or given twice; nothing is taken in.
            PassageError: another number of texts than of rows, or something that isn't text; nothing is taken in.
        """
        keys = free_rows(rows, self._texts)
        check_texts(len(keys), texts)
        analysed = [list(self._analyzer(text)) for text in texts]
        self._built = None
        self._texts = {**self._texts, **dict(zip(keys.tolist(), analysed, strict=True))}

    def remove(self, rows: RowArray) -> None:
        """Forget these rows; the very next search doesn't see them.

        Raises:
            UnknownIdError: a row that isn't there; nothing is forgotten.
        """
        gone = set(known_rows(rows, self._texts).tolist())
        self._built = None
        self._texts = {row: text for row, text in self._texts.items() if row not in gone}

    def search(self, text: str, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """The at most k rows that share a word with `text`, best first, equal scores by row.

        Args:
            text: the query.
            k: how many at most.
            allowed: row keys to choose from, shape (n,); the statistics are those of all texts nevertheless.
        """
        terms = list(self._analyzer(text))
        rows, engine = self._engine_now()
        if engine is None or not terms:
            return best(rows[:0], np.empty(0, dtype=np.float32), 0)
        scores = np.asarray(engine.get_scores(terms), dtype=np.float32)
        wanted = set(terms)
        shares = np.array([not wanted.isdisjoint(frequencies) for frequencies in engine.doc_freqs])
        if allowed is not None:
            shares &= np.isin(rows, allowed)
        return best(rows[shares], scores[shares], k)

    def save(self, path: Path) -> None:
        """Write everything to one new file.

        Raises:
            StorageError: the file can't be written.
        """
        analysed = json.dumps(list(self._texts.values())).encode()
        arrays: Arrays = {
            "rows": np.array(list(self._texts), dtype=np.int64),
            "words": np.frombuffer(analysed, dtype=np.uint8),
        }
        write_arrays(path, self.kind, {"analyzer": analyzer_name(self._analyzer)}, arrays)

    @classmethod
    def load(cls, path: Path, *, analyzer: Analyzer | None = None) -> Self:
        """Read back what `save` wrote; an analyzer of your own must be given again.

        Raises:
            IndexNotFoundError: no such file.
            IndexCorruptError: a file that is cut short, altered, or no such file at all.
            IndexMismatchError: an index of another kind, format or analyzer.
            ConfigurationError: built with an analyzer of somebody's own, and none is given.
        """
        header, arrays = read_arrays(path, cls.kind)
        with corrupt(path):
            made = cls(analyzer=analyzer_of(header["analyzer"], analyzer, path))
            analysed = json.loads(arrays["words"].tobytes())
            if len(analysed) != len(arrays["rows"]):
                raise IndexCorruptError(f"{path} is damaged: its texts and its row keys don't fit together")
            made._texts = dict(zip(arrays["rows"].tolist(), analysed, strict=True))
        return made

    def _engine_now(self) -> tuple[RowArray, Any]:
        """The row keys and the engine over their texts; None where there is no word to be found."""
        with self._lock:
            if self._built is None:
                rows = np.array(list(self._texts), dtype=np.int64)
                engine = self._engine(list(self._texts.values())) if any(self._texts.values()) else None
                self._built = rows, engine
            return self._built
