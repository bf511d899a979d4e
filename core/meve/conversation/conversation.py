"""A conversation as a graph of turns that can be searched from any of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from meve._fork_safety import ForkSafeLock
from meve._formulas import normalize
from meve._growable_array import GrowableArray
from meve._lazy_field import LazyField
from meve._not_picklable import NotPicklable
from meve._vectors import validate_vectors
from meve.components._repeated_text import RepeatedText
from meve.components._sentence_splitter import split_sentences
from meve.components.embedders import FAST, resolve_embedder
from meve.components.embedders.cached import CachedEmbedder
from meve.components.lexical.bm25 import Bm25Index
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import VerifierLike, resolve_verifier
from meve.conversation._exports import read_export
from meve.conversation._records import place_messages
from meve.conversation._slice_sources import SliceTurns, TurnsWithWords, list_sources
from meve.conversation._turn_passages import PlacedPassage, make_passage
from meve.conversation.conservation import ConservationMetrics, find_salience, measure_conservation
from meve.conversation.coordinates import Coordinates, compute_coordinates, count_components, find_homogeneity
from meve.conversation.graph import PlacedTurn, TurnGraph
from meve.conversation.outcomes import NO_OUTCOMES, OutcomeStatistics, merge_outcomes
from meve.conversation.ranking import Ranking, SliceView, TrajectoryScorer
from meve.conversation.result import add_slice
from meve.conversation.slices import LocalAuthority, Slice, SliceAuthority, SlicePolicy, ask_authority
from meve.errors import ConfigurationError, EmptyCorpusError, ModelError, wrap_errors
from meve.pipeline._preparation import TokenCounters
from meve.pipeline._scorers import SimilarityScorer, VerifierScorer
from meve.pipeline.config import Overrides, RetrieverConfig, check_option_names, validate_config
from meve.pipeline.context import Context
from meve.pipeline.engine import TokenCounterLike
from meve.pipeline.pipeline import Pipeline
from meve.pipeline.query_check import check_query
from meve.ports import Embedder, Scorer, Verifier
from meve.types import FloatArray, Query

DEFAULT_CONFIG = RetrieverConfig(
    candidates=64, threshold=0.1, min_verified=5, redundancy=0.95, fill=False, separator="\n"
)
"""The settings of the five phases for conversations. Scores are those of the ranking."""


class ConversationOptions(TypedDict, total=False):
    """The keyword arguments that choose a conversation's components; None or absent means the default."""

    embedder: Embedder | str | None
    """As in `meve.Retriever`; by default the built-in one that is fast."""
    verifier: VerifierLike | None
    """Judges the meaning of a turn, as in `meve.Retriever`; by default the cosine does."""
    tokens: TokenCounterLike | None
    """The token counter, as in `meve.Retriever`."""
    config: RetrieverConfig | None
    """The settings of the five phases; `DEFAULT_CONFIG` by default."""
    policy: SlicePolicy | None
    """The rules by which slices are cut."""
    ranking: Ranking | None
    """The weights by which turns are ordered."""
    authority: SliceAuthority | None
    """Cuts the slices; by default this process does, without a signature."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Snapshot:
    graph: TurnGraph
    latest: str | None
    vectors: FloatArray
    coordinates: Coordinates
    passages: list[PlacedPassage | None]
    has_text: np.ndarray[Any, np.dtype[np.bool_]]


class Conversation(NotPicklable):
    """Turns with their replies, branches and regenerations. Safe to share between threads; turns can be added.

    Nothing is embedded before the first question, and each turn once. `ConversationOptions` describes the arguments.

    Raises:
        ConfigurationError: an option of the wrong type.
    """

    _instead = "for another process, keep the messages, and make a conversation there by from_messages"

    def __init__(self, **options: Unpack[ConversationOptions]) -> None:
        check_option_names(options, ConversationOptions.__annotations__, "Conversation")
        self._options = options
        self.config = validate_config(options.get("config") or DEFAULT_CONFIG)
        self.policy = _check("policy", options.get("policy") or SlicePolicy(), SlicePolicy)
        self.ranking = _check("ranking", options.get("ranking") or Ranking(), Ranking)
        self.authority = options.get("authority") or LocalAuthority()
        self._state: tuple[TurnGraph, str | None] = TurnGraph.from_turns([]), None
        """The turns and the latest one, replaced together."""
        self._outcomes: dict[str, OutcomeStatistics] = {}
        self._vectors = GrowableArray(np.zeros((0, 0), dtype=np.float32))
        self._components = GrowableArray(np.zeros(0, dtype=np.int64))
        self._homogeneity = GrowableArray(np.zeros(0, dtype=np.float32))
        self._has_text = GrowableArray(np.zeros(0, dtype=np.bool_))
        self._passages: list[PlacedPassage | None] = []
        self._index = Bm25Index()
        self._snapshot: _Snapshot | None = None
        self._verifier: Verifier | None = None
        self._adding = ForkSafeLock()
        self._reading, self._indexing = (ForkSafeLock(guards="the conversation") for _ in range(2))

    @classmethod
    def from_messages(cls, messages: Iterable[Any], **options: Unpack[ConversationOptions]) -> Self:
        """Create a conversation of messages.

        Args:
            messages: of LangChain or LlamaIndex, or records: mappings with `text` (or `content`) and optionally `id`,
                `parent` (an id, several ids, or None for a beginning), `speaker` (or `role`), `time` and `phase`; pairs
                (speaker, text); or texts. A message that names no parent replies to the one before it. In messages of a
                framework, `additional_kwargs` may hold `parent` and `time`.
            options: see `ConversationOptions`.

        Raises:
            ValidationError: an unknown format, or turns that reply to each other in a circle.
            DuplicateIdError: two turns with one id.
            UnknownIdError: a parent that isn't among the messages.

        >>> talk = [{"id": "a", "text": "Help"}, {"id": "b", "text": "How?"}, {"id": "c", "text": "So?", "parent": "a"}]
        >>> Conversation.from_messages(talk).graph.children[0]
        (1, 2)
        """
        conversation = cls(**options)
        conversation.extend(messages)
        return conversation

    @classmethod
    def from_export(
        cls, path: str | Path, conversation: str | None = None, **options: Unpack[ConversationOptions]
    ) -> Self:
        """Create a conversation from a JSON export of ChatGPT or Claude, or from a list of records.

        Edited and regenerated messages stay as branches. Messages without text stay as turns, but are never retrieved.

        Args:
            path: the file.
            conversation: the id or title of the conversation; needed if the file has several.
            options: see `ConversationOptions`.

        Raises:
            ValidationError: the file can't be read, or has another format.
            UnknownIdError: no conversation of that name, several without a name given, or a missing parent.
            DuplicateIdError: two turns with one id.
        """
        exported = read_export(Path(path), conversation)
        imported = cls.from_messages(exported.turns, **options)
        if exported.latest in imported.graph.positions:
            imported._state = imported.graph, exported.latest
        return imported

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def graph(self) -> TurnGraph:
        """The turns and their replies."""
        return self._state[0]

    @property
    def latest(self) -> str | None:
        """The id of the turn that was added last, or that an export names as current; None if there is none."""
        return self._state[1]

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of all turns, by position; turns are embedded first where necessary.

        Raises:
            ModelError: the embedder failed.
        """
        return self._read().coordinates

    def extend(self, messages: Iterable[Any]) -> None:
        """Add messages, as `from_messages`. The first one that names no parent replies to the latest turn.

        Raises:
            ValidationError: as `from_messages`; nothing is added.
        """
        with self._adding:
            graph, latest = self._state
            new = place_messages(messages, latest, len(graph))
            if new:
                self._state = (extended := graph.extend(new)), extended.turns[-1].id

    def cut_slice(self, anchor: str | None = None, policy: SlicePolicy | None = None) -> Slice:
        """Return the turns that a question at a turn may reach.

        Args:
            anchor: the id of the turn; the latest one by default.
            policy: replaces the conversation's own.

        Raises:
            UnknownIdError: no turn has this id.
            EmptyCorpusError: the conversation has no turns.
            AdmissibilityError: the authority gave no valid slice.
        """
        graph, latest = self._state
        return self._cut(graph, latest if anchor is None else anchor, policy)[0]

    def retrieve(
        self,
        question: str,
        anchor: str | None = None,
        *,
        speaker: str | None = None,
        policy: SlicePolicy | None = None,
        ranking: Ranking | None = None,
        **overrides: Unpack[Overrides],
    ) -> Context:
        """Return the turns that bear on a question asked at a turn, under a token limit.

        Only the slice of the anchor is searched. An anchor whose text is the question is left out. The trace is a
        `meve.conversation.result.ConversationTrace`.

        Args:
            question: the question.
            anchor: the id of the turn after which it is asked; the latest one by default.
            speaker: who asks; by default the anchor's speaker if the anchor's text is the question, else nobody known.
            policy: replaces the conversation's own.
            ranking: replaces the conversation's own.
            overrides: any value of `RetrieverConfig`, by name.

        Raises:
            QueryError: a blank question, or one that is too long for a model.
            UnknownIdError: no turn has the anchor's id.
            EmptyCorpusError: the conversation has no turns.
            AdmissibilityError: the authority gave no valid slice; nothing was searched.
            ConfigurationError: an unknown option, or a value out of range.
            ModelError: a model failed.
        """
        check_query(question)
        config = self.config.override(**overrides)
        ranking = _check("ranking", ranking or self.ranking, Ranking)
        snapshot = self._read()
        cut, rows = self._cut(snapshot.graph, snapshot.latest if anchor is None else anchor, policy)
        known = snapshot.graph.positions
        at = known[cut.anchor]
        asked = snapshot.graph.turns[at]
        is_question = asked.text.strip() == question.strip()
        asker = (asked.speaker if is_question else "") if speaker is None else _check("speaker", speaker, str)
        is_searched = snapshot.has_text[rows] & ((rows != at) | (not is_question))
        turns = SliceTurns(
            rows=rows[is_searched], positions=known, passages=snapshot.passages, vectors=snapshot.vectors,
            index=self._index, lock=self._indexing,
        )  # fmt: skip
        words = TurnsWithWords(turns=turns)
        sources = list_sources(turns, words, at, config)
        view = SliceView(
            rows=rows, anchor=at, vectors=snapshot.vectors, coordinates=snapshot.coordinates,
            parents=snapshot.graph.parents,
        )  # fmt: skip
        outcomes = {known[turn]: each.expected for turn, each in self._outcomes.copy().items() if turn in known}
        semantic, verifier = self._make_semantic()
        scorer = TrajectoryScorer(
            view=view, semantic=semantic, outcomes=outcomes, ranking=ranking, speaker=asker,
            words=partial(words.score_shares, rows=rows),
        )  # fmt: skip
        context = Pipeline(
            sources=sources,
            scorer=scorer,
            fallback=sources[0],
            tokens=self._counters.get(config.tokens),
            embedder=self._embedder,
            repeats=RepeatedText(),
            split=split_sentences,
            verifier_name=verifier,
            notes={"anchor": cut.anchor, "admitted": len(cut.turns)},
        ).run(Query(text=question), config)
        return add_slice(context, cut, snapshot.graph, snapshot.coordinates)

    def record_outcome(self, turn_id: str, outcome: float) -> OutcomeStatistics:
        """Record how useful a turn was in a context, and return its statistics; later rankings use them.

        Args:
            turn_id: the turn.
            outcome: from 0, useless, to 1, useful.

        Raises:
            UnknownIdError: no turn has this id.
            ValidationError: the outcome is no number in [0, 1].
        """
        self.graph.position(turn_id)
        with self._adding:
            self._outcomes[turn_id] = self._outcomes.get(turn_id, NO_OUTCOMES).add(outcome)
            return self._outcomes[turn_id]

    def outcomes(self) -> Mapping[str, OutcomeStatistics]:
        """Return the statistics of turns with recorded outcomes, by id."""
        return self._outcomes.copy()

    def merge_outcomes(self, outcomes: Mapping[str, OutcomeStatistics]) -> None:
        """Add statistics that another process recorded for the same conversation.

        Raises:
            UnknownIdError: an unknown turn; nothing is added.
            ValidationError: no mapping of turn ids to statistics; nothing is added.
        """
        with self._adding:
            merged = merge_outcomes(self._outcomes, outcomes)
            for turn_id in merged:
                self.graph.position(turn_id)
            self._outcomes = merged

    def measure_conservation(self) -> ConservationMetrics:
        """Return magnitude, energy and information of all turns with text, weighted by their salience.

        Raises:
            EmptyCorpusError: the conversation has no turns with text.
            ModelError: the embedder failed.
        """
        snapshot = self._read()
        if not snapshot.has_text.any():
            raise EmptyCorpusError("the conversation has no turns with text: add messages first")
        known = self._outcomes.copy()
        outcomes = [known.get(turn.id, NO_OUTCOMES) for turn in snapshot.graph.turns]
        salience = find_salience(snapshot.coordinates, outcomes)
        return measure_conservation(snapshot.vectors[snapshot.has_text], salience[snapshot.has_text])

    def _cut(
        self, graph: TurnGraph, anchor: str | None, policy: SlicePolicy | None
    ) -> tuple[Slice, np.ndarray[Any, np.dtype[np.int64]]]:
        if not len(graph) or anchor is None:
            raise EmptyCorpusError("the conversation has no turns: add messages first")
        policy = _check("policy", policy or self.policy, SlicePolicy)
        graph.position(anchor)
        return ask_authority(self.authority, graph, anchor, policy)

    @LazyField
    def _embedder(self) -> CachedEmbedder:
        return CachedEmbedder(resolve_embedder(self._options.get("embedder"), default=FAST))

    @LazyField
    def _counters(self) -> TokenCounters:
        return TokenCounters(resolve_tokens(self._options.get("tokens")))

    def _make_semantic(self) -> tuple[Scorer, str]:
        """Return the scorer of the meaning, and the verifier's name."""
        given = self._options.get("verifier")
        if given is None:
            return SimilarityScorer(), "cosine"
        embedder = self._embedder.inner
        if self._verifier is None:
            self._verifier = resolve_verifier(given, embedder)
        return VerifierScorer(self._verifier, embedder), self._verifier.name

    def _read(self) -> _Snapshot:
        with self._reading:
            graph, latest = self._state
            if self._snapshot is not None and self._snapshot.graph is graph and self._snapshot.latest == latest:
                return self._snapshot
            new = graph.turns[len(self._passages) :]  # the turns before keep their positions
            if new:
                self._read_turns(graph, new, len(self._passages))
            vectors = self._vectors.values
            self._snapshot = _Snapshot(
                graph=graph,
                latest=latest,
                vectors=vectors,
                coordinates=compute_coordinates(graph, vectors, self._components.values, self._homogeneity.values),
                passages=self._passages[:],
                has_text=self._has_text.values,
            )
            return self._snapshot

    def _read_turns(self, graph: TurnGraph, turns: tuple[PlacedTurn, ...], first: int) -> None:
        embedder = self._embedder
        passages = [make_passage(turn, first + n) if turn.text.strip() else None for n, turn in enumerate(turns)]
        known = [(n, passage.content) for n, passage in enumerate(passages) if passage is not None]
        vectors = np.zeros((len(turns), embedder.dimension), dtype=np.float32)
        if known:
            with wrap_errors(ModelError, f"embedding turns with {embedder.name!r}"):
                embedded = embedder.embed_passages([text for _, text in known])
            shape = (len(known), embedder.dimension)
            vectors[[n for n, _ in known]] = normalize(validate_vectors(embedded, shape, f"embedder {embedder.name!r}"))
        if not first:
            self._vectors = GrowableArray(vectors[:0])
        self._vectors.put(first, vectors)
        self._components.put(first, count_components([turn.text for turn in turns]))
        self._homogeneity.put(first, find_homogeneity(graph.parents, self._vectors.values, first))
        self._has_text.put(first, np.array([passage is not None for passage in passages], dtype=np.bool_))
        with self._indexing:
            rows, texts = [first + n for n, _ in known], [turns[n].text for n, _ in known]
            self._index.add(np.array(rows, dtype=np.int64), texts)
        self._passages += passages


def _check(name: str, value: object, kind: type[Any]) -> Any:  # noqa: ANN401 - of that kind
    if not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be a {kind.__name__}, got {value!r:.80}")
    return value
