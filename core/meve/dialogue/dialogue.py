"""A dialogue that stays outside the prompt: its turns, and what was made of them when a question first asked for it."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from meve._formulas import unit
from meve._vectors import checked_vectors
from meve.conversation.importance import Window, names_something, windows, within
from meve.dialogue._components import Entities, Loaded, Parts
from meve.dialogue._word_index import Names, WordIndex, names_of
from meve.dialogue.turns import Record, Said, Turn, as_turn, pieces
from meve.errors import ConfigurationError, ModelError, ValidationError, foreign
from meve.pipeline.engine import Tokens
from meve.ports import Embedder
from meve.types import Entity, FloatArray, Passage

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many turns are read, and how many there are to read."""

BATCH = 1_024
"""Pieces that are read between two reports of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A dialogue as far as it had been read when it was asked: arrays and lists that only ever grow elsewhere."""

    turns: Sequence[Turn]
    pieces: Sequence[Said]
    owners: npt.NDArray[np.int64]
    """Of each piece, its turn's place; shape (m,)."""
    vectors: FloatArray
    """Of each piece, of length 1 or zero; shape (m, d)."""
    entities: Sequence[tuple[Entity, ...]]
    """Of each piece, what it names."""
    index: WordIndex
    """Of each piece, and perhaps of more, the names and the words, and where these stand."""
    tokens: Sequence[int]
    """Of each piece as it is shown."""
    speakers: frozenset[str]
    """Who talks, case folded."""
    anchors: npt.NDArray[np.bool_]
    """Of each turn, whether it names something; shape (n,)."""

    def row(self, piece: str) -> int:
        """A piece's place among all of them, by its id."""
        turn, _, part = piece.partition(".")
        return int(np.searchsorted(self.owners, int(turn))) + int(part or 0)

    def named(self, passage: Passage) -> Names:
        """The names in a piece; none in what is none of them."""
        return self.index.names[passage.row] if isinstance(passage, Said) else ()

    def worded(self, passage: Passage) -> frozenset[str]:
        """The words of a piece; none of what is none of them."""
        return self.index.words[passage.row] if isinstance(passage, Said) else frozenset()

    def windows(self, reach: int) -> list[Window]:
        """The stretches around anchors."""
        return windows(self.anchors, reach)

    def inside(self, stretches: Sequence[Window]) -> npt.NDArray[np.bool_]:
        """Of each piece, whether its turn lies in one of them; shape (m,)."""
        return np.asarray(within(stretches, len(self.turns))[self.owners])


class Dialogue:
    """Turns, in their order. Threads may share one; turns may be added at any time.

    Nothing is computed before a question comes. What is computed then of turns (entities, vectors) is kept; meanwhile
    turns can be added, for the next question.
    Args are parts; `from_turns` takes their names.
    """

    def __init__(
        self,
        *,
        embedder: Embedder | str | None = None,
        entities: Entities | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self._parts = Parts(embedder, entities, tokens)
        self._turns: list[Turn] = []
        self._pieces: list[Said] = []
        self._entities: list[tuple[Entity, ...]] = []
        self._index = WordIndex()
        self._owners: list[int] = []
        self._tokens: list[int] = []
        self._vectors = np.zeros((0, 0), dtype=np.float32)
        self._speakers: set[str] = set()
        self._named: list[bool] = []
        self._read = 0
        self._known: Read | None = None
        self._adding, self._reading = threading.Lock(), threading.RLock()

    @classmethod
    def from_turns(
        cls,
        turns: Iterable[Record],
        *,
        embedder: Embedder | str | None = None,
        entities: Entities | None = None,
        tokens: Tokens | None = None,
    ) -> Self:
        """A dialogue of these turns.

        Args:
            turns: in their order. Each a mapping with `text` (or `content`), `speaker` (or `role`) and `time`, of which
                only the text must be there; a pair (speaker, text); or a text.
            embedder: as for `meve.Retriever`: None for the one that ships.
            entities: what finds entities: None for patterns; see `meve.components.entities.resolve_entities`.
            tokens: what counts, as for `meve.Retriever`.

        Raises:
            ValidationError: a turn that can't be read; the message says which.
        """
        made = cls(embedder=embedder, entities=entities, tokens=tokens)
        made.extend(turns)
        return made

    def __len__(self) -> int:
        """How many turns."""
        return len(self._turns)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All of them, in order."""
        return tuple(self._turns)

    def append(self, turn: Record) -> None:
        """Add one at the end; the next question sees it.

        Raises:
            ValidationError: it can't be read; nothing was added.
        """
        self.extend([turn])

    def extend(self, turns: Iterable[Record]) -> None:
        """Add some at the end.

        Raises:
            ValidationError: one can't be read; none was added.
        """
        if isinstance(turns, str | bytes) or not isinstance(turns, Iterable) or hasattr(turns, "keys"):
            raise ValidationError(f"turns are {turns!r:.80}: give a list of turns")
        given = list(turns)  # whoever makes them may add some, too
        with self._adding:
            made = [as_turn(record, len(self._turns) + n) for n, record in enumerate(given)]
            self._turns.extend(made)

    @property
    def parts(self) -> Loaded:
        """What embeds, finds entities and counts; loaded when first asked for.

        Raises:
            ConfigurationError: a part that can't be.
            ModelError: a model that can't be had.
        """
        return self._parts.load()

    def fork(self) -> Self:
        """Another with the same turns and parts, and what was read of them; what is added to one isn't in the other."""
        made = type(self)()
        made._parts = self._parts
        read, made._turns = self._known, self._turns[:]
        if read is not None:
            made._pieces, made._entities, made._tokens = list(read.pieces), list(read.entities), list(read.tokens)
            made._index = read.index.fork(len(read.pieces))
            made._owners, made._vectors = read.owners.tolist(), read.vectors
            made._speakers, made._read, made._known = set(read.speakers), len(read.turns), read
        return made

    def entities(self, n: int) -> tuple[Entity, ...]:
        """What the turn at a place names, from 0: of a long one, what each of its pieces names, with places in these.

        Raises:
            ValidationError: no such turn.
        """
        if not 0 <= n < len(self._turns):
            raise ValidationError(f"there is no turn {n!r}: the dialogue has {len(self._turns)}, from 0 on")
        read = self.read()
        first, last = (int(np.searchsorted(read.owners, n, side)) for side in ("left", "right"))
        return tuple(entity for mine in read.entities[first:last] for entity in mine)

    def read(self, progress: Progress | None = None) -> Read:
        """Find entities in what is new, and embed it.

        Args:
            progress: told how many of the new turns are read, and of how many.

        Raises:
            ModelError: a part failed; what was read before stays.
        """
        with self._reading:
            count, before = len(self._turns), self._read
            if self._known is not None and self._read == count:
                return self._known
            while self._read < count:
                self._read_some(count)
                if progress:
                    progress(self._read - before, count - before)
            self._known = Read(
                turns=self._turns[:count],
                pieces=self._pieces[:],
                owners=np.asarray(self._owners, dtype=np.int64),
                vectors=self._vectors[: len(self._pieces)],
                entities=self._entities[:],
                index=self._index,
                tokens=self._tokens[:],
                speakers=frozenset(self._speakers),
                anchors=self._anchors(count),
            )
            return self._known

    def _read_some(self, count: int) -> None:
        end = min(self._read + BATCH, count)
        made = [piece for n in range(self._read, end) for piece in pieces(self._turns[n], n)]
        made = [replace(piece, row=len(self._pieces) + n) for n, piece in enumerate(made)]
        embedder, detector, counter = self.parts
        texts = [piece.text for piece in made]
        with foreign(ModelError, f"finding entities with {detector.name!r}"):
            entities = [tuple(found) for found in detector.detect(texts)]
            names = list(map(names_of, entities))
        if len(entities) != len(texts):
            raise ModelError(f"detector {detector.name!r} answered for {len(entities)} texts of {len(texts)}")
        with foreign(ModelError, f"embedding turns with {embedder.name!r}"):
            vectors = embedder.embed_passages([piece.content for piece in made])
        with foreign(ModelError, f"counting tokens with {counter.name!r}"):
            counts = counter.count_many([piece.shown for piece in made])
        vectors = checked_vectors(vectors, (len(made), embedder.dimension), f"embedder {embedder.name!r}")
        vectors = unit(vectors)
        vectors[[not any(map(str.isalnum, text)) for text in texts]] = 0  # a question mark is like any question
        self._keep(vectors)
        self._pieces += made
        self._tokens += counts
        self._entities += entities
        for text, found in zip(texts, names, strict=True):
            self._index.add(text, found)
        self._owners += [piece.turn for piece in made]
        speakers = {turn.speaker.casefold() for turn in self._turns[self._read : end] if turn.speaker}
        if speakers - self._speakers:
            self._named.clear()  # whose names say nothing has changed
        self._speakers |= speakers
        self._read = end

    def _keep(self, vectors: FloatArray) -> None:
        """Room grows by doubling: one turn more copies nothing of the others, most times."""
        used = len(self._pieces)
        if used + len(vectors) > len(self._vectors):
            room = np.zeros((max(2 * len(self._vectors), used + len(vectors), BATCH), vectors.shape[1]), np.float32)
            if used:  # before, there is no width
                room[:used] = self._vectors[:used]
            self._vectors = room
        if len(vectors):
            self._vectors[used : used + len(vectors)] = vectors

    def _anchors(self, count: int) -> npt.NDArray[np.bool_]:
        fresh = self._entities[len(self._named) :]
        self._named += [bool(entities) and names_something(entities, self._speakers) for entities in fresh]
        made = np.zeros(count, dtype=np.bool_)
        made[np.asarray(self._owners, dtype=np.int64)[np.asarray(self._named, dtype=np.bool_)]] = True
        return made


def checked_dialogue(dialogue: object) -> Dialogue:
    """A dialogue, if it is one.

    Raises:
        ConfigurationError: something else.
    """
    if not isinstance(dialogue, Dialogue):
        raise ConfigurationError(f"dialogue is {dialogue!r:.60}: give Dialogue.from_turns(…)")
    return dialogue
