"""Cases of the trajectory experiment: a turn, its candidates with their features, and which of them are right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from meve.components.lexical.bm25 import Bm25Index
from meve.conversation._turn_passages import make_passage
from meve.conversation.coordinates import ABLATIONS, Weights, compute_coordinates
from meve.conversation.graph import PlacedTurn, TurnGraph
from meve.conversation.ranking import Ranking, SliceView, TrajectoryScorer
from meve.conversation.slices import SlicePolicy, cut_slice
from meve.evaluation.experiments.trajectory.reply_trees import ReplyTree
from meve.pipeline._scorers import SimilarityScorer
from meve.ports import Embedder
from meve.types import Candidate, FloatArray, Query

Task: TypeAlias = Literal["parent", "continuation", "question"]

WINDOW = 100
"""The number of turns before or after a turn among which the right ones are looked for."""
POLICIES = {"slices": SlicePolicy(), "published slices": SlicePolicy.paper()}
"""The policies whose leakage is measured: the default and the published one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A turn with m candidates."""

    features: dict[str, FloatArray]
    """By name, in [0, 1], each of shape (m,)."""
    right: npt.NDArray[np.bool_]
    """Which candidates are right; shape (m,)."""
    visible: npt.NDArray[np.bool_] | None = None
    """Which candidates lie on the line of the parent, or are it; None for continuations; shape (m,)."""
    admitted: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """By policy, which candidates lie in the slice of the parent; shape (m,)."""


def make_cases(tree: ReplyTree, asked: Sequence[int], task: Task, embedder: Embedder) -> Iterator[Case]:
    """Yield a case for each turn that has a right candidate within the window.

    For `parent` the candidates are the turns before, whose replies among each other are known, and the right ones are
    the turn's parents. For `continuation` they are the turns after, of which nothing is known, and the right ones are
    its replies. For `question` they are all turns, and `asked` are positions in `tree.questions`.
    """
    vectors = embedder.embed_passages([turn.text or "." for turn in tree.turns])
    index = Bm25Index()
    index.add(np.arange(len(tree.turns), dtype=np.int64), [turn.text for turn in tree.turns])
    if task == "question":
        yield from _make_question_cases(tree, asked, vectors, index, embedder)
        return
    positions = {turn.id: n for n, turn in enumerate(tree.turns)}
    whole = TurnGraph.from_turns(tree.turns) if task == "parent" else None
    for n in asked:
        if task == "parent":
            rows = np.arange(max(0, n - WINDOW), n)
            right = np.isin(rows, [positions[parent] for parent in tree.turns[n].parents])
        else:
            rows = np.arange(n + 1, min(len(tree.turns), n + 1 + WINDOW))
            right = np.array([tree.turns[n].id in tree.turns[row].parents for row in rows.tolist()], dtype=np.bool_)
        if right.any():
            case = Case(features=_find_features(tree.turns, n, rows, vectors, index), right=right)
            yield case if whole is None else _with_visibility(case, whole, tree.turns[n], rows)


def _make_question_cases(
    tree: ReplyTree, asked: Sequence[int], vectors: FloatArray, index: Bm25Index, embedder: Embedder
) -> Iterator[Case]:
    rows = np.arange(len(tree.turns))
    for n in asked:
        text, evidence = tree.questions[n]
        turns = [*tree.turns, PlacedTurn(id="question", text=text)]
        both = np.concatenate([vectors, embedder.embed_passages([text])])
        features = _find_features(turns, len(rows), rows, both, index)
        yield Case(features=features, right=np.isin(rows, list(evidence)))


def _with_visibility(case: Case, graph: TurnGraph, turn: PlacedTurn, rows: npt.NDArray[np.int64]) -> Case:
    ids = [graph.turns[row].id for row in rows.tolist()]
    line = _ancestors(graph, graph.position(turn.parents[0]))
    admitted = {
        name: np.isin(ids, list(cut_slice(graph, turn.parents[0], policy).turns)) for name, policy in POLICIES.items()
    }
    return replace(case, visible=np.isin(ids, list(line)), admitted=admitted)


def _ancestors(graph: TurnGraph, n: int) -> set[str]:
    """Return the ids of a turn and of all turns that it replies to, over however many steps."""
    found, waiting = set[int](), [n]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += graph.all_parents(at)
    return {graph.turns[at].id for at in found}


def _find_features(
    turns: Sequence[PlacedTurn], n: int, rows: npt.NDArray[np.int64], vectors: FloatArray, index: Bm25Index
) -> dict[str, FloatArray]:
    """Return the features that the library's own scorer sees, and trajectories with other dimensions."""
    before = bool(rows[0] < n)
    window = rows if before else np.array([n, *rows.tolist()])
    placed = [_place(turns[row], turns, window, known=before) for row in window.tolist()]
    graph = TurnGraph.from_turns(placed)
    local = np.arange(len(window)) if before else np.arange(1, len(window))
    view = SliceView(
        rows=np.arange(len(window)),
        anchor=len(window) - 1 if before else 0,
        vectors=vectors[window],
        coordinates=compute_coordinates(graph, vectors[window]),
        parents=graph.parents,
    )
    words = _keyword_shares(index, turns[n].text, rows)
    candidates = [
        Candidate(passage=make_passage(turns[row], int(at)), origin="bench", vector=vectors[row])
        for row, at in zip(rows.tolist(), local, strict=True)
    ]
    scorer = TrajectoryScorer(
        view=view, semantic=SimilarityScorer(), outcomes={}, ranking=Ranking(), speaker=turns[n].speaker,
        words=lambda _: words if before else np.append(np.zeros(1, np.float32), words),
    )  # fmt: skip
    _, features = scorer.judge(Query(text=turns[n].text, vector=vectors[n]), candidates)
    found = {name: values for name, values in features.items() if name not in ("distance", "outcome")}
    for count, weights in ABLATIONS.items():
        found[f"{count} dimensions"] = np.exp(-view.distances(Weights(of=weights))[local])
    return found


def _place(turn: PlacedTurn, turns: Sequence[PlacedTurn], window: npt.NDArray[np.int64], *, known: bool) -> PlacedTurn:
    """Return a turn with the parents that are known within the window."""
    inside = {turns[row].id for row in window.tolist()} if known and turn.parents else set()
    return replace(turn, parents=tuple(parent for parent in turn.parents if parent in inside))


def _keyword_shares(index: Bm25Index, text: str, rows: npt.NDArray[np.int64]) -> FloatArray:
    found, scores = index.search(text, len(rows), rows)
    shares = np.zeros(len(rows), dtype=np.float32)
    shares[np.searchsorted(rows, found)] = scores / max(float(scores.max(initial=0.0)), 1e-9)
    return shares
