"""BM25 over an inverted index of our own: a query costs what the postings of its terms cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from meve._formulas import bm25_idf, bm25_norm
from meve.components._array_files import Arrays, corrupt, read_arrays, write_arrays
from meve.components._row_ids import best
from meve.components.lexical._index_state import Held, held_of
from meve.components.lexical._postings import Block, Counts, Ints
from meve.components.lexical._ranking import Asked, Scores, ranked, summed
from meve.components.lexical.analyzers import Analyzer, analyzer_name, analyzer_of, content_words
from meve.errors import ConfigurationError, IndexCorruptError, PassageError
from meve.types import FloatArray, RowArray

DEAD_SHARE = 0.25
"""Removed texts are passed over until they are more than this share of all; then everything of them is dropped."""
_BULK = 64
_BLOCK_WORDS = 1 << 21


class Bm25Index:
    """BM25 with exact statistics after every add and removal, filters, and ties that always fall the same way.

    Searches may run in several threads at once, as long as nobody writes meanwhile. Whatever interrupts an add or a
    removal, a KeyboardInterrupt or a lack of memory, it's made as a whole or not at all. An add that raises isn't made.
    A removal is made before what is left is put together anew, and stays made if that is interrupted; where memory
    doesn't suffice for it, a later removal tries again.

    It differs from `rank_bm25` in the inverse document frequency alone, where that one lacks the 1 in the logarithm.
    Words in many texts weigh a little less there, and those in more than half of them (the, of) would weigh below zero,
    so that it gives them a quarter of the mean weight, more than words half as common get. Function words are such
    words, and `content_words` leaves them out: of rank_bm25's ten best for 200 questions of HotpotQA over the same
    words, this index has 99 %. With the paper's white space tokens, function words and all, it has 85 %.

    A million passages of 40 words take about 1 GiB while it is built, the texts included (`benchmarks/bm25.py`).

    Args:
        k1: how soon repeating a term stops to count, not negative.
        b: how much a text's length counts, in [0, 1].
        analyzer: turns texts and queries into words. A term counts as often as the query repeats it.

    Raises:
        ConfigurationError: k1 or b out of range.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).

    >>> index = Bm25Index()
    >>> index.add(np.array([1, 2]), ["The moon is far.", "The sun is farther."])
    >>> index.search("how far is the moon?", k=1)[0].tolist()
    [1]
    """

    kind: ClassVar[str] = "bm25"

    def __init__(self, *, k1: float = 1.5, b: float = 0.75, analyzer: Analyzer = content_words) -> None:
        if not (0 <= k1 < float("inf") and 0 <= b <= 1):
            raise ConfigurationError(f"k1={k1!r}, b={b!r}: give k1 >= 0, and b from 0 to 1")
        self._k1 = k1
        self._b = b
        self._analyzer = analyzer
        self._held = Held()

    def __len__(self) -> int:
        """How many texts it holds."""
        return len(self._held.rows)

    def add(self, rows: RowArray, texts: Sequence[str]) -> None:
        """Take in texts under new row keys; the very next search sees them.

        Raises:
            DuplicateIdError: a row key that is taken or given twice; nothing is taken in.
            PassageError: another number of texts than of rows, or something that isn't text; nothing is taken in.
        """
        held = self._held
        keys = held.rows.check_new(rows)
        check_texts(len(keys), texts)
        first = held.rows.size
        lengths = np.empty(len(keys), dtype=np.int32)
        numbered: list[list[int]] = []
        blocks: list[Block] = []
        if len(keys) < _BULK:
            numbered = [self._numbers(text) for text in texts]
            lengths[:] = [len(numbers) for numbers in numbered]
        else:
            blocks = list(self._blocks(texts, first, lengths))
        held.norms = None
        held.lengths.put(first, lengths)
        held.rows.reserve(keys)  # from here on these positions are nobody else's, whatever becomes of this add
        if blocks:
            held.postings.append_blocks(blocks)
        for i, numbers in enumerate(numbered):
            held.postings.append_text(first + i, numbers)
        held.rows.settle(first)

    def remove(self, rows: RowArray) -> None:
        """Forget these rows; the very next search doesn't see them, nor do the statistics count them.

        Raises:
            UnknownIdError: a row that isn't there; nothing is forgotten.
        """
        held = self._held
        held.norms = None
        held.rows.drop(rows)
        if held.rows.dead > DEAD_SHARE * held.rows.size:
            with suppress(MemoryError):  # the removal is made, and this can wait
                self._held = self._compacted()

    def search(self, text: str, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """The at most k rows that share a word with `text`, best first, equal scores by row, at the cut-off too.

        Args:
            text: the query.
            k: how many at most.
            allowed: row keys to choose from, shape (n,); the statistics are those of all texts nevertheless.
        """
        terms, _ = self._asked(text)
        if not terms or k <= 0:
            return best(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32), 0)
        held = self._held.rows
        mask = None if allowed is None else held.mask(allowed)
        norms, least = self._norms()
        positions, scores = ranked(terms, k, norms=norms, least=least, k1=self._k1, mask=mask)
        return best(held.rows[positions], scores.astype(np.float32), k)

    def shares(self, text: str) -> tuple[RowArray, FloatArray]:
        """Every row that shares a word with `text`, in no order, and its score as a share of the most there can be.

        The most is what a text made of the query's words would score, those that no text holds included; what repeats
        them can come above 1.
        """
        terms, unknown = self._asked(text)
        if not terms:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        norms, _ = self._norms()
        ordered = sorted(terms, key=lambda term: -term.weight)
        positions, scores = summed([(term.positions, term.scores(norms, self._k1)) for term in ordered], len(norms))
        rarest = float(bm25_idf(np.zeros(1, dtype=np.int64), len(self))[0])
        most = (self._k1 + 1.0) * (sum(term.weight for term in terms) + unknown * rarest)
        return self._held.rows.rows[positions], (scores / most).astype(np.float32)

    def save(self, path: Path) -> None:
        """Write everything to one new file; of removed texts nothing, not even a word that only they held.

        Raises:
            StorageError: the file can't be written.
        """
        block, vocabulary = self._live()
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
        """Read back what `save` wrote; an analyzer of your own must be given again.

        Raises:
            IndexNotFoundError: no such file.
            IndexCorruptError: a file that is cut short, altered, or no such file at all.
            IndexMismatchError: an index of another kind, format or analyzer.
            ConfigurationError: built with an analyzer of somebody's own, and none is given.
        """
        header, arrays = read_arrays(path, cls.kind)
        with corrupt(path):
            chosen = analyzer_of(header["analyzer"], analyzer, path)
            made = cls(k1=header["k1"], b=header["b"], analyzer=chosen)
            block = Block(**{name: arrays[name] for name in ("terms", "starts", "positions", "counts")})
            raw, ends = arrays["words"].tobytes(), arrays["word_ends"].tolist()
            words = [
                raw[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends], ends, strict=False)
            ]
            made._held = held_of(arrays["rows"], arrays["lengths"], block, words)
            if len(arrays["lengths"]) != len(arrays["rows"]) or len(made._held.vocabulary) != len(block.terms):
                raise IndexCorruptError(f"{path} is damaged: its texts and its words don't fit together")
        return made

    def _numbers(self, text: str) -> list[int]:
        vocabulary = self._held.vocabulary
        return [vocabulary[word] for word in self._analyzer(text)]

    def _blocks(self, texts: Sequence[str], first: int, lengths: Ints) -> Iterator[Block]:
        """Blocks of about two million words, and the length of each text into `lengths`."""
        numbers: list[int] = []
        begun = 0
        for i, text in enumerate(texts):
            before = len(numbers)
            numbers.extend(self._numbers(text))
            lengths[i] = len(numbers) - before
            if len(numbers) >= _BLOCK_WORDS or i == len(texts) - 1:
                positions = np.repeat(np.arange(first + begun, first + i + 1, dtype=np.int32), lengths[begun : i + 1])
                yield Block.from_words(np.array(numbers, dtype=np.int32), positions)
                numbers, begun = [], i + 1

    def _asked(self, text: str) -> tuple[list[Asked], int]:
        """The distinct terms of a query that stand in a live text, and how many words of it stand in none."""
        held = self._held
        asked = Counter(self._analyzer(text))
        found: list[tuple[int, Ints, Counts]] = []
        for word, times in asked.items():
            term = held.vocabulary.get(word)
            if term is None:
                continue
            positions, counts = held.postings.of(term)
            if held.rows.dead:
                stay = held.rows.alive[positions]
                positions, counts = positions[stay], counts[stay]
            if len(positions):
                found.append((times, positions, counts))
        idf = bm25_idf(np.array([len(positions) for _, positions, _ in found]), len(self)).tolist()
        terms = [
            Asked(weight=times * weight, positions=positions, counts=counts)
            for (times, positions, counts), weight in zip(found, idf, strict=True)
        ]
        return terms, asked.total() - sum(times for times, _, _ in found)

    def _norms(self) -> tuple[Scores, float]:
        """What counts are weighed against at each position, and the least of it."""
        held = self._held
        norms = held.norms
        if norms is None:
            lengths = held.lengths.values[: held.rows.size]
            mean = int(lengths.sum(where=held.rows.alive, dtype=np.int64)) / len(self)
            made = bm25_norm(lengths, mean, self._k1, self._b)
            norms = held.norms = made, float(made.min())
        return norms

    def _live(self) -> tuple[Block, list[str]]:
        """The postings of the live texts, positions and terms numbered without gaps, and the words of these terms."""
        alive = self._held.rows.alive
        block = self._held.postings.whole().kept(alive, (np.cumsum(alive) - 1).astype(np.int32))
        every = list(self._held.vocabulary)
        vocabulary = [every[term] for term in block.terms.tolist()]
        terms = np.arange(len(vocabulary), dtype=np.int32)
        return Block(terms=terms, starts=block.starts, positions=block.positions, counts=block.counts), vocabulary

    def _live_rows(self) -> tuple[RowArray, Ints]:
        """The row keys of the live texts and their lengths, both of shape (n,)."""
        rows = self._held.rows
        return rows.rows[rows.alive], self._held.lengths.values[: rows.size][rows.alive]

    def _compacted(self) -> Held:
        """The live texts, and nothing of the others; changes nothing."""
        return held_of(*self._live_rows(), *self._live())


def check_texts(rows: int, texts: Sequence[str]) -> None:
    """Refuse what can't be indexed.

    Raises:
        PassageError: another number of texts than of rows, or something that isn't text.
    """
    if isinstance(texts, str) or len(texts) != rows:
        raise PassageError(f"{len(texts)} texts for {rows} rows: give one text a row")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise PassageError(f"text number {i} is {type(text).__name__}: give str")
