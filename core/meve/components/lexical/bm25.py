"""The default keyword index: BM25 over an inverted index, whose queries cost as much as their terms' posting lists."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from meve._formulas import bm25_idf, bm25_norm
from meve.components._array_files import Arrays, read_arrays, report_corruption, write_arrays
from meve.components._row_map import select_top
from meve.components.lexical._bm25_state import Bm25State, Norms, build_state
from meve.components.lexical._postings import Block, Counts, Ints
from meve.components.lexical._ranking import QueryTerm, Scores, rank_texts, sum_scores
from meve.components.lexical.analyzers import (
    Analyzer,
    analyzer_name,
    content_words,
    resolve_analyzer,
    search_words,
    stemmed_words,
    words,
)
from meve.errors import ConfigurationError, IndexCorruptError, PassageError
from meve.types import FloatArray, RowArray

DEAD_SHARE = 0.25
"""The index is compacted once removed texts exceed this share of all positions."""
_KEPT = 16
"""The scores of a query's words are kept for later queries, up to this many postings for each text."""
_KEEPING_WORDS = (search_words, content_words, words, stemmed_words)
"""The analyzers of which a word of letters is one term."""
_BULK = 64
_BLOCK_WORDS = 1 << 21


class Bm25Index:
    """BM25 with exact statistics after every add and removal, filters and deterministic ties.

    Several threads may search at once while nobody writes. An interrupted add or removal (KeyboardInterrupt,
    MemoryError) takes effect fully or not at all. An add that raises has no effect. A removal takes effect before the
    index is compacted; an interrupted compaction is retried at a later removal.

    The only difference from `rank_bm25` is the inverse document frequency, which lacks the 1 in the logarithm there.
    Words in more than half of the texts would get a negative weight there, and get a quarter of the mean weight
    instead. `search_words` leaves such words out. For 200 questions of HotpotQA over the same words, this index
    returns 99 % of rank_bm25's ten best; with the paper's white space tokens, stop words included, 85 %.

    `meve.ports.LexicalIndex` describes the arguments and errors of the methods.

    A million passages of 40 words take about 1 GiB while the index is built, texts included (`benchmarks/bm25.py`).

    Args:
        k1: how quickly repetitions of a term saturate, not negative.
        b: how much a text's length counts, in [0, 1].
        analyzer: splits texts and queries into words. A term counts as often as the query repeats it.

    Raises:
        ConfigurationError: k1 or b is out of range.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).

    >>> index = Bm25Index()
    >>> index.add(np.array([1, 2]), ["The moon is far.", "The sun is farther."])
    >>> index.search("how far is the moon?", k=1)[0].tolist()
    [1]
    """

    kind: ClassVar[str] = "bm25"

    def __init__(self, *, k1: float = 1.5, b: float = 0.75, analyzer: Analyzer = search_words) -> None:
        if not (0 <= k1 < float("inf") and 0 <= b <= 1):
            raise ConfigurationError(f"k1 must be at least 0 and b between 0 and 1, got {k1!r} and {b!r}")
        self._k1 = k1
        self._b = b
        self._analyzer = analyzer
        self._state = Bm25State()

    def __len__(self) -> int:
        return len(self._state.rows)

    def add(self, rows: RowArray, texts: Sequence[str]) -> None:
        """Add texts under new row keys; the next search sees them."""
        state = self._state
        keys = state.rows.check_new(rows)
        check_texts(len(keys), texts)
        first = state.rows.size
        lengths = np.empty(len(keys), dtype=np.int32)
        term_id_lists: list[list[int]] = []
        blocks: list[Block] = []
        if len(keys) < _BULK:
            term_id_lists = [self._term_ids(text) for text in texts]
            lengths[:] = [len(term_ids) for term_ids in term_id_lists]
        else:
            blocks = list(self._build_blocks(texts, first, lengths))
        state.norms = None
        state.lengths.put(first, lengths)
        state.rows.reserve(keys)  # an interrupted add must not leave these positions to another
        if blocks:
            state.postings.append_blocks(blocks)
        for i, term_ids in enumerate(term_id_lists):
            state.postings.append_text(first + i, term_ids)
        state.rows.publish(first)

    def remove(self, rows: RowArray) -> None:
        """Remove these rows; the next search and its statistics leave them out."""
        state = self._state
        state.norms = None
        state.rows.remove(rows)
        if state.rows.hole_count > DEAD_SHARE * state.rows.size:
            with suppress(MemoryError):  # the removal is done; compaction can wait
                self._state = self._compact()

    def search(self, text: str, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """Return at most k rows that share a word with `text`, best first; ties go to the smaller row."""
        terms = list(self._query_terms(Counter(self._analyzer(text))).values())
        if not terms or k <= 0:
            return select_top(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32), 0)
        state = self._state.rows
        mask = None if allowed is None else state.mask(allowed)
        norms = self._norms()
        positions, scores = rank_texts(terms, k, norms=norms.values, least=norms.least, k1=self._k1, mask=mask)
        return select_top(state.rows[positions], scores.astype(np.float32), k)

    def word_counter(self, allowed: Callable[[], RowArray | None] = lambda: None) -> Callable[[str], int] | None:
        """Return a function that tells in how many texts a word in lower case stands; None with another analyzer.

        Other analyzers than those of this package may not keep words as they are, or be slow.

        Args:
            allowed: returns the row keys of the texts to count, shape (n,), or None for all; called at most once.
        """
        if self._analyzer not in _KEEPING_WORDS:
            return None
        admit = cache(lambda: (self._state, self._state.rows.mask(allowed())))

        def count_texts(word: str) -> int:
            terms = self._analyzer(word)
            if len(terms) != 1 or terms[0] not in self._state.vocabulary:
                return 0
            term = self._query_terms({terms[0]: 1}).get(terms[0])
            if term is None:
                return 0
            state, mask = admit()
            if mask is None:
                return len(term.positions)
            known = term.positions[term.positions < (len(mask) if state is self._state else 0)]
            return int(np.count_nonzero(mask[known]))

        return count_texts

    def score_shares(self, text: str, least: float = 0.0) -> tuple[RowArray, FloatArray]:
        """Return every row that shares a word with `text`, unordered, and its score divided by the maximum score.

        The maximum is the score of a text made of the query's words, words unknown to the index included. A text that
        repeats them can exceed 1.

        Args:
            text: the query.
            least: the maximum is at least the score of a text made of so many words that stand in one text each, so
                that common words alone give small shares.
        """
        query_words = Counter(self._analyzer(text))
        scored = self._score_words(query_words)
        if not scored:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        unknown = query_words.total() - sum(query_words[word] for word in scored)
        ordered = sorted(scored.values(), key=lambda each: -each[0])
        positions, scores = sum_scores([(places, added) for _, places, added in ordered], self._state.rows.size)
        of_unknown, of_rarest = self._rarities({"": 0, " ": 1}).tolist()  # of no word that a text can have
        weights = sum(weight for weight, _, _ in scored.values())
        most = (self._k1 + 1.0) * max(weights + unknown * of_unknown, least * of_rarest)
        return self._state.rows.rows[positions], (scores / most).astype(np.float32)

    def _score_words(self, query_words: Counter[str]) -> dict[str, tuple[float, Ints, Scores]]:
        """Return weight, positions and scores of the words found in live texts, kept until a change."""
        if not len(self):
            return {}
        norms = self._norms()
        found = {word: norms.scored.get((word, times)) for word, times in query_words.items()}
        new = self._query_terms({word: query_words[word] for word, known in found.items() if known is None})
        for word, term in new.items():
            if norms.postings > _KEPT * len(self):
                norms.scored, norms.postings = {}, 0
            scored = term.weight, term.positions, term.scores(norms.values, self._k1)
            norms.scored[word, query_words[word]] = found[word] = scored
            norms.postings += len(term.positions)
        return {word: scored for word, scored in found.items() if scored is not None}

    def save(self, path: Path) -> None:
        """Write the index to one new file, without removed texts and their words."""
        block, vocabulary = self._live_postings()
        rows, lengths = self._live_rows()
        encoded = [word.encode("utf-8", "surrogatepass") for word in vocabulary]
        header = {"k1": self._k1, "b": self._b, "analyzer": analyzer_name(self._analyzer)}
        arrays: Arrays = {
            "rows": rows,
            "lengths": lengths,
            "terms": block.terms,
            "starts": block.starts,
            "positions": block.positions,
            "counts": block.counts,
            "words": np.frombuffer(b"".join(encoded), dtype=np.uint8),
            "word_ends": np.cumsum([len(word) for word in encoded], dtype=np.int64),
        }
        write_arrays(path, self.kind, header, arrays)

    @classmethod
    def load(cls, path: Path, *, analyzer: Analyzer | None = None) -> Self:
        """Read what `save` wrote; a custom analyzer must be passed in.

        Raises:
            IndexMismatchError: an index of another kind, format or analyzer.
            ConfigurationError: built with a custom analyzer, and none is given.
        """
        header, arrays = read_arrays(path, cls.kind)
        with report_corruption(path):
            chosen = resolve_analyzer(header["analyzer"], analyzer, path)
            index = cls(k1=header["k1"], b=header["b"], analyzer=chosen)
            block = Block(**{name: arrays[name] for name in ("terms", "starts", "positions", "counts")})
            raw, ends = arrays["words"].tobytes(), arrays["word_ends"].tolist()
            words = [
                raw[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends], ends, strict=False)
            ]
            index._state = build_state(arrays["rows"], arrays["lengths"], block, words)
            if len(arrays["lengths"]) != len(arrays["rows"]) or len(index._state.vocabulary) != len(block.terms):
                raise IndexCorruptError(f"{path} is damaged: its texts and words don't match")
        return index

    def _term_ids(self, text: str) -> list[int]:
        vocabulary = self._state.vocabulary
        return [vocabulary[word] for word in self._analyzer(text)]

    def _build_blocks(self, texts: Sequence[str], first: int, lengths: Ints) -> Iterator[Block]:
        """Yield blocks of about two million words, and write the length of each text to `lengths`."""
        term_ids: list[int] = []
        begun = 0
        for i, text in enumerate(texts):
            before = len(term_ids)
            term_ids.extend(self._term_ids(text))
            lengths[i] = len(term_ids) - before
            if len(term_ids) >= _BLOCK_WORDS or i == len(texts) - 1:
                positions = np.repeat(np.arange(first + begun, first + i + 1, dtype=np.int32), lengths[begun : i + 1])
                yield Block.from_words(np.array(term_ids, dtype=np.int32), positions)
                term_ids, begun = [], i + 1

    def _query_terms(self, query_words: Mapping[str, int]) -> dict[str, QueryTerm]:
        """Return the terms of those words of a query that are found in live texts, by word."""
        state = self._state
        term_postings: list[tuple[str, Ints, Counts]] = []
        for word in query_words:
            term = state.vocabulary.get(word)
            if term is None:
                continue
            positions, counts = state.postings.lookup(term)
            if state.rows.hole_count:
                stay = state.rows.alive[positions]
                positions, counts = positions[stay], counts[stay]
            if len(positions):
                term_postings.append((word, positions, counts))
        idf = self._rarities({word: len(positions) for word, positions, _ in term_postings}).tolist()
        return {
            word: QueryTerm(weight=query_words[word] * weight, positions=positions, counts=counts)
            for (word, positions, counts), weight in zip(term_postings, idf, strict=True)
        }

    def _rarities(self, counts: Mapping[str, int]) -> npt.NDArray[np.float64]:
        """Return the weights of words by the number of texts with each, shape (words,)."""
        return bm25_idf(np.array(list(counts.values()), dtype=np.int64), len(self))

    def _norms(self) -> Norms:
        state = self._state
        norms = state.norms
        if norms is None:
            lengths = state.lengths.values[: state.rows.size]
            mean = int(lengths.sum(where=state.rows.alive, dtype=np.int64)) / len(self)
            index = bm25_norm(lengths, mean, self._k1, self._b)
            norms = state.norms = Norms(values=index, least=float(index.min()))
        return norms

    def _live_postings(self) -> tuple[Block, list[str]]:
        """Return the postings of live texts, renumbered without gaps, and the words of their terms."""
        alive = self._state.rows.alive
        block = self._state.postings.merge_all().renumber(alive, (np.cumsum(alive) - 1).astype(np.int32))
        every = list(self._state.vocabulary)
        vocabulary = [every[term] for term in block.terms.tolist()]
        terms = np.arange(len(vocabulary), dtype=np.int32)
        return Block(terms=terms, starts=block.starts, positions=block.positions, counts=block.counts), vocabulary

    def _live_rows(self) -> tuple[RowArray, Ints]:
        """Return the row keys of live texts and their lengths, both of shape (n,)."""
        rows = self._state.rows
        return rows.rows[rows.alive], self._state.lengths.values[: rows.size][rows.alive]

    def _compact(self) -> Bm25State:
        """Return a state of the live texts alone, without changing anything."""
        return build_state(*self._live_rows(), *self._live_postings())


def check_texts(rows: int, texts: Sequence[str]) -> None:
    """Check that there is one text for each row.

    Raises:
        PassageError: the numbers of texts and rows differ, or an entry isn't text.
    """
    if isinstance(texts, str) or len(texts) != rows:
        raise PassageError(f"got {len(texts)} texts for {rows} rows: give one text per row")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise PassageError(f"text number {i} must be a str, got {type(text).__name__}")
