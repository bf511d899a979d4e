"""A dialogue that stays outside the prompt: its turns, and the vectors and entities that its questions need."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self, Unpack

import numpy as np
import numpy.typing as npt

from meve._fork_safety import ForkSafeLock
from meve._formulas import normalize
from meve._growable_array import GrowableArray
from meve._vectors import validate_vectors
from meve.components.entities import EntityDetectorLike
from meve.conversation.importance import TurnWindow, find_windows, is_anchor, mask_windows
from meve.conversation.turn import Turn, TurnRecord, parse_turn
from meve.dialogue._components import DialogueComponents, DialogueOptions, LoadedComponents
from meve.dialogue._name_index import NameIndex, NameWords, extract_names
from meve.dialogue._turn_passages import TurnPassage, split_turn
from meve.errors import ConfigurationError, ModelError, ValidationError, wrap_errors
from meve.pipeline.engine import TokenCounterLike
from meve.ports import Embedder
from meve.types import Entity, FloatArray, Passage, Progress

_BATCH = 1_024
"""Turns that are read between two reports of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueSnapshot:
    """A dialogue as it was read at one moment; turns that are added later don't change it."""

    turns: Sequence[Turn]
    passages: Sequence[TurnPassage]
    owners: npt.NDArray[np.int64]
    """For each passage, the position of its turn; shape (m,)."""
    vectors: FloatArray
    """For each passage, a vector of length 1, or zero if it has neither letters nor digits; shape (m, d)."""
    entities: Sequence[tuple[Entity, ...]]
    """For each passage, its entities."""
    index: NameIndex
    """Names and words of each passage, and possibly of later ones."""
    tokens: Sequence[int]
    """For each passage, its tokens as it is shown."""
    speakers: frozenset[str]
    """Names of the speakers, case-folded."""
    anchors: npt.NDArray[np.bool_]
    """For each turn, whether it names something; shape (n,)."""

    def row(self, passage_id: str) -> int:
        """Return the position of a passage among all of them."""
        turn, _, part = passage_id.partition(".")
        return int(np.searchsorted(self.owners, int(turn))) + int(part or 0)

    def names_of(self, passage: Passage) -> NameWords:
        """Return the names in a dialogue passage; empty for other passages."""
        return self.index.names[passage.row] if isinstance(passage, TurnPassage) else ()

    def words_of(self, passage: Passage) -> frozenset[str]:
        """Return the words of a dialogue passage; empty for other passages."""
        return self.index.words[passage.row] if isinstance(passage, TurnPassage) else frozenset()

    def find_windows(self, reach: int) -> list[TurnWindow]:
        """Return the windows around anchors."""
        return find_windows(self.anchors, reach)

    def mask_passages(self, windows: Sequence[TurnWindow]) -> npt.NDArray[np.bool_]:
        """Return for each passage whether its turn lies in one of the windows; shape (m,)."""
        return np.asarray(mask_windows(windows, len(self.turns))[self.owners])


class Dialogue:
    """An ordered list of turns that can be searched. Safe to share between threads; turns can be added at any time.

    Nothing is computed before the first question. Entities and vectors are computed once for each turn; turns that are
    added meanwhile count for the next question. `DialogueOptions` describes the arguments.
    """

    def __init__(
        self,
        *,
        embedder: Embedder | str | None = None,
        entities: EntityDetectorLike | None = None,
        tokens: TokenCounterLike | None = None,
    ) -> None:
        self._components = DialogueComponents(embedder, entities, tokens)
        self._turns: list[Turn] = []
        self._passages: list[TurnPassage] = []
        self._entities: list[tuple[Entity, ...]] = []
        self._index = NameIndex()
        self._owners: list[int] = []
        self._tokens: list[int] = []
        self._vectors = GrowableArray(np.zeros((0, 0), dtype=np.float32))
        self._speakers: set[str] = set()
        self._is_anchor: list[bool] = []
        """For each passage, as far as known with the speakers so far."""
        self._read_count = 0
        self._snapshot: DialogueSnapshot | None = None
        self._adding, self._reading = ForkSafeLock(), ForkSafeLock(reentrant=True, guards="the dialogue")

    @classmethod
    def from_turns(cls, turns: Iterable[TurnRecord], **options: Unpack[DialogueOptions]) -> Self:
        """Create a dialogue of these turns.

        Args:
            turns: in order. Each is a mapping with `text` (or `content`) and optionally `speaker` (or `role`) and
                `time`; a pair (speaker, text); or a text.
            options: the components, see `DialogueOptions`.

        Raises:
            ValidationError: a turn in an unknown format; the message gives its position.
        """
        dialogue = cls(**options)
        dialogue.extend(turns)
        return dialogue

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns in order."""
        return tuple(self._turns)

    def append(self, turn: TurnRecord) -> None:
        """Add a turn at the end; the next question sees it.

        Raises:
            ValidationError: an unknown format; nothing is added.
        """
        self.extend([turn])

    def extend(self, turns: Iterable[TurnRecord]) -> None:
        """Add turns at the end.

        Raises:
            ValidationError: a turn in an unknown format; nothing is added.
        """
        if isinstance(turns, str | bytes) or not isinstance(turns, Iterable) or hasattr(turns, "keys"):
            raise ValidationError(f"turns must be a list of turns, got {turns!r:.80}")
        records = list(turns)  # before the lock: a generator may itself add turns
        with self._adding:
            first = len(self._turns)
            self._turns.extend([parse_turn(record, first + n) for n, record in enumerate(records)])

    @property
    def components(self) -> LoadedComponents:
        """The embedder, entity detector and token counter; loaded on first use.

        Raises:
            ConfigurationError: an unknown or unsuitable component.
            ModelError: a model that can't be loaded.
        """
        return self._components.load()

    def fork(self) -> Self:
        """Return an independent copy that keeps what was computed so far."""
        copy = type(self)()
        copy._components = self._components
        snapshot, copy._turns = self._snapshot, self._turns[:]
        if snapshot is not None:
            copy._passages, copy._tokens = list(snapshot.passages), list(snapshot.tokens)
            copy._entities = list(snapshot.entities)
            copy._index = snapshot.index.fork(len(snapshot.passages))
            copy._owners, copy._vectors = snapshot.owners.tolist(), GrowableArray(snapshot.vectors)
            copy._speakers, copy._read_count = set(snapshot.speakers), len(snapshot.turns)
            copy._snapshot = snapshot
        return copy

    def entities(self, n: int) -> tuple[Entity, ...]:
        """Return the entities of a turn; in a long one, their offsets count within its passages.

        Args:
            n: position of the turn, from 0.

        Raises:
            ValidationError: no turn at this position.
        """
        if not 0 <= n < len(self._turns):
            raise ValidationError(f"there is no turn {n!r}: the dialogue has {len(self._turns)} turns, from 0 on")
        snapshot = self.read()
        first, last = (int(np.searchsorted(snapshot.owners, n, side)) for side in ("left", "right"))
        return tuple(entity for entities in snapshot.entities[first:last] for entity in entities)

    def read(self, progress: Progress | None = None) -> DialogueSnapshot:
        """Find the entities and vectors of new turns and return the state of the dialogue.

        Args:
            progress: called with the number of new turns that are read, and of all new turns.

        Raises:
            ModelError: a component failed; what was computed before is kept.
        """
        with self._reading:
            count, before = len(self._turns), self._read_count
            if self._snapshot is not None and before == count:
                return self._snapshot
            while self._read_count < count:
                self._read_batch(count)
                if progress:
                    progress(self._read_count - before, count - before)
            self._snapshot = DialogueSnapshot(
                turns=self._turns[:count],
                passages=self._passages[:],
                owners=np.asarray(self._owners, dtype=np.int64),
                vectors=self._vectors.values,
                entities=self._entities[:],
                index=self._index,
                tokens=self._tokens[:],
                speakers=frozenset(self._speakers),
                anchors=self._find_anchors(count),
            )
            return self._snapshot

    def _read_batch(self, count: int) -> None:
        end = min(self._read_count + _BATCH, count)
        passages = [passage for n in range(self._read_count, end) for passage in split_turn(self._turns[n], n)]
        passages = [replace(passage, row=len(self._passages) + n) for n, passage in enumerate(passages)]
        embedder, detector, counter = self.components
        texts = [passage.text for passage in passages]
        with wrap_errors(ModelError, f"finding entities with {detector.name!r}"):
            entities = [tuple(each) for each in detector.detect(texts)]
            names = list(map(extract_names, entities))
        if len(entities) != len(texts):
            raise ModelError(f"entity detector {detector.name!r} returned {len(entities)} lists for {len(texts)} texts")
        with wrap_errors(ModelError, f"embedding turns with {embedder.name!r}"):
            embeddings = embedder.embed_passages([passage.content for passage in passages])
        with wrap_errors(ModelError, f"counting tokens with {counter.name!r}"):
            counts = counter.count_many([passage.prompt_text for passage in passages])
        vectors = validate_vectors(embeddings, (len(passages), embedder.dimension), f"embedder {embedder.name!r}")
        vectors = normalize(vectors)
        vectors[[not any(map(str.isalnum, text)) for text in texts]] = 0  # a question mark is near any question
        if self._passages:
            self._vectors.put(len(self._passages), vectors)
        else:
            self._vectors = GrowableArray(vectors)  # the width is known from here on
        self._passages += passages
        self._tokens += counts
        self._entities += entities
        for text, text_names in zip(texts, names, strict=True):
            self._index.add(text, text_names)
        self._owners += [passage.turn for passage in passages]
        speakers = {turn.speaker.casefold() for turn in self._turns[self._read_count : end] if turn.speaker}
        if speakers - self._speakers:
            self._is_anchor.clear()  # turns that name a new speaker may no longer be anchors
        self._speakers |= speakers
        self._read_count = end

    def _find_anchors(self, count: int) -> npt.NDArray[np.bool_]:
        new = self._entities[len(self._is_anchor) :]
        self._is_anchor += [bool(entities) and is_anchor(entities, self._speakers) for entities in new]
        anchors = np.zeros(count, dtype=np.bool_)
        anchors[np.asarray(self._owners, dtype=np.int64)[np.asarray(self._is_anchor, dtype=np.bool_)]] = True
        return anchors


def check_dialogue(dialogue: object) -> Dialogue:
    """Return the argument; raise ConfigurationError unless it is a dialogue."""
    if not isinstance(dialogue, Dialogue):
        raise ConfigurationError(f"dialogue must come from Dialogue.from_turns(…), got {dialogue!r:.60}")
    return dialogue
