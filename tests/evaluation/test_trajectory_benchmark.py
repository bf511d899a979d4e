"""The trajectory experiment, on small data."""

import gzip
import json
import random
from dataclasses import replace

import numpy as np
import pytest

from meve.conversation import PlacedTurn, TurnGraph
from meve.errors import DatasetError, EvaluationError
from meve.evaluation.experiments.trajectory.cases import make_cases
from meve.evaluation.experiments.trajectory.experiment import (
    PUBLISHED,
    TrajectoryOptions,
    choose_weights,
    draw_halves,
    fit_weights,
    rank_measures,
    run_trajectory,
    score_case,
)
from meve.evaluation.experiments.trajectory.reply_trees import ReplyTree, read_reply_trees
from meve.testing.fakes import WordEmbedder

pytest.importorskip("sklearn")


@pytest.fixture
def data(tmp_path):
    """Write twelve dialogues in which each reply names the speaker of the turn that it answers."""
    chance, lines = random.Random(1), []
    for n in range(12):
        turns = [{"idx": 0, "speaker": "speaker0", "text": "hello all", "parent": None}]
        for k in range(1, 15):
            parent = chance.randrange(k)
            text = f"{turns[parent]['speaker']}: answer with some words {k}"
            turns.append({"idx": k, "speaker": f"speaker{k}", "text": text, "parent": parent})
        lines.append(json.dumps({"id": f"d{n}", "utterances": turns}))
    (tmp_path / "molweni").mkdir()
    (tmp_path / "molweni" / "dialogues.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_who_is_named_finds_the_parent_and_slices_leak_nothing(data):
    results = run_trajectory(TrajectoryOptions(data=data, sets=("molweni",), cases=40))
    assert results.experiments == ["molweni: parent", "molweni: leakage", "molweni: continuation"]
    assert results.value("molweni: parent", "+ speakers", "MRR@10").value > 0.9
    assert results.value("molweni: parent", "recency", "MRR@10").value < 0.6
    assert results.value("molweni: parent", PUBLISHED, "MRR@10").n == 80
    assert results.value("molweni: leakage", "+ speakers, slices", "share unseen").value == 0
    assert results.value("molweni: leakage", "recency", "share unseen").value > 0.2


def test_weights_are_learnt_and_tested_on_different_conversations(data, monkeypatch):
    from meve.evaluation.experiments.trajectory import experiment

    fitted, tested = [], []
    monkeypatch.setattr(experiment, "fit_weights", lambda cases, f, s: fitted.append(cases) or fit_weights(cases, f, s))
    monkeypatch.setattr(experiment, "score_case", lambda case, w: tested.append(case) or score_case(case, w))
    halves = draw_halves(
        read_reply_trees(data, "molweni"), "parent", TrajectoryOptions(data=data, cases=20), _embedder()
    )
    by_half = experiment._weights(halves, 0)
    count = len(experiment.systems())
    assert all(cases is halves[1] for cases in fitted[:count])
    assert all(cases is halves[0] for cases in fitted[count:])
    assert len(by_half) == 2


def _embedder():
    from meve.components.embedders.cached import CachedEmbedder

    return CachedEmbedder(WordEmbedder())


def test_features_of_a_case_know_nothing_that_came_later():
    turns = [PlacedTurn(id="0", text="apple", speaker="Ana"), PlacedTurn(id="1", text="berry", parents=("0",))]
    turns += [PlacedTurn(id=str(n), text="apple", parents=("0",)) for n in range(2, 5)]
    short, whole = (ReplyTree(id="x", turns=tuple(turns[:n]), asked=(2,)) for n in (3, 5))
    (one,), (other,) = (list(make_cases(tree, (2,), "parent", WordEmbedder())) for tree in (short, whole))
    for name in ("semantic", "recency", "trajectory", "attention", "7 dimensions"):
        np.testing.assert_allclose(one.features[name], other.features[name])


def test_continuations_are_found_among_later_turns_without_their_links():
    turns = [PlacedTurn(id=str(n), text="apple berry", parents=("0",) if n in (2, 3) else ()) for n in range(4)]
    (case,) = make_cases(ReplyTree(id="x", turns=tuple(turns), asked=(0,)), (0,), "continuation", WordEmbedder())
    assert case.right.tolist() == [False, True, True]
    loose = [PlacedTurn(id=each.id, text=each.text) for each in turns[:2]] + [
        PlacedTurn(id="2", text="apple berry", parents=("1",)), PlacedTurn(id="3", text="apple berry", parents=("0",))
    ]  # fmt: skip
    (again,) = make_cases(ReplyTree(id="x", turns=tuple(loose), asked=(0,)), (0,), "continuation", WordEmbedder())
    for name, values in case.features.items():
        np.testing.assert_allclose(values, again.features[name])


def test_visible_turns_are_the_ancestors_over_all_parents():
    turns = [
        PlacedTurn(id="a", text="a"), PlacedTurn(id="b", text="b"), PlacedTurn(id="c", text="c", parents=("a", "b")),
        PlacedTurn(id="x", text="x", parents=("a",)), PlacedTurn(id="d", text="d", parents=("c",)),
    ]  # fmt: skip
    TurnGraph.from_turns(turns)
    (case,) = make_cases(ReplyTree(id="x", turns=tuple(turns), asked=(4,)), (4,), "parent", WordEmbedder())
    assert case.visible.tolist() == [True, True, True, False]
    assert case.admitted["slices"].tolist() == [True, True, True, False]


def test_evidence_of_a_question_is_found_among_all_turns_of_a_talk(tmp_path):
    (tmp_path / "locomo").mkdir()
    turns = [{"dia_id": f"D1:{n}", "speaker": "Ana", "text": f"word{n} is here"} for n in range(120)]
    talk = {"conversation_id": "c", "sessions": [{"timestamp": "2026-01-01T00:00:00", "turns": turns}]}
    rows = [
        {"conversation_id": "c", "question": q, "category_name": kind, "evidence": evidence}
        for q, kind, evidence in (
            ("word7?", "single_hop", ["D1:7"]), ("gone?", "single_hop", ["D9:1"]), ("no?", "adversarial", ["D1:1"]),
        )
    ]  # fmt: skip
    (tmp_path / "locomo" / "conversations.jsonl").write_text(json.dumps(talk))
    (tmp_path / "locomo" / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tree,) = read_reply_trees(tmp_path, "locomo")
    assert tree.questions == (("word7?", frozenset({7})),)
    (case,) = make_cases(tree, (0,), "question", WordEmbedder())
    assert np.flatnonzero(case.right).tolist() == [7]
    assert len(case.right) == 120
    assert case.features["words"].argmax() == 7


def test_single_feature_stands_where_a_fit_gains_nothing(data):
    halves = draw_halves(
        read_reply_trees(data, "molweni"), "parent", TrajectoryOptions(data=data, cases=20), _embedder()
    )
    noise = np.random.default_rng(0)
    cases = [
        replace(case, features={**case.features, "words": case.right * 1.0, "semantic": noise.random(len(case.right))})
        for case in halves[0]
    ]
    assert choose_weights(cases, ("semantic", "words"), 0) == {"words": 1.0}
    assert len(choose_weights(halves[0], ("semantic", "words", "recency", "addressed"), 0)) == 4


def test_measures_of_a_ranking():
    scores, right = np.array([3.0, 2.0, 1.0], np.float32), np.array([False, True, True])
    assert rank_measures(scores, right) == {"MRR@10": 0.5, "Recall@10": 1.0, "NDCG@10": 0.6934}
    assert rank_measures(np.arange(20, dtype=np.float32), np.arange(20) == 0)["MRR@10"] == 0


def test_chat_room_and_answer_trees_are_read(tmp_path):
    (tmp_path / "irc").mkdir()
    row = {"file": "f", "text": "hi", "speaker": "Ana", "system": False, "annotated": True}
    rows = [{**row, "idx": 0, "parents": []}, {**row, "idx": 1, "system": True, "parents": []}]
    rows += [{**row, "idx": 2, "parents": [0, 1, 2]}]
    with gzip.open(tmp_path / "irc" / "messages.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, rows)))
    (tree,) = read_reply_trees(tmp_path, "irc")
    assert [turn.parents for turn in tree.turns] == [(), ("0",)]
    (tmp_path / "oasst").mkdir()
    message = {"message_id": "m", "parent_id": None, "role": "prompter", "text": "q", "depth": 0}
    messages = [{**message, "message_id": "n", "parent_id": "m", "depth": 1}, message]
    (tmp_path / "oasst" / "trees.jsonl").write_text(json.dumps({"tree_id": "t", "messages": messages}))
    (tree,) = read_reply_trees(tmp_path, "oasst")
    assert [turn.id for turn in tree.turns] == ["m", "n"]
    assert tree.asked == (1,)


def test_absent_unknown_and_small_sets_are_clear_errors(tmp_path, data):
    with pytest.raises(DatasetError, match="no set 'x' of replies"):
        read_reply_trees(tmp_path, "x")
    with pytest.raises(DatasetError, match="there is no folder"):
        read_reply_trees(tmp_path, "irc")
    (tmp_path / "oasst").mkdir()
    (tmp_path / "oasst" / "trees.jsonl").write_text('{"tree_id": "t", "messages": [{"message_id": "m"}]}')
    with pytest.raises(DatasetError, match=r"the field 'messages\[0\]\.depth' is missing"):
        read_reply_trees(tmp_path, "oasst")
    with pytest.raises(EvaluationError, match="cases must be at least 10"):
        run_trajectory(TrajectoryOptions(data=data, cases=5))
    one = (data / "molweni" / "dialogues.jsonl").read_text().splitlines()[0]
    (data / "molweni" / "dialogues.jsonl").write_text(one)
    with pytest.raises(EvaluationError, match="each half needs at least 10 cases"):
        run_trajectory(TrajectoryOptions(data=data, sets=("molweni",)))


@pytest.mark.shared
@pytest.mark.slow
def test_replies_of_the_chat_room_are_found_better_than_by_recency(shared):
    results = run_trajectory(TrajectoryOptions(data=shared / "data", sets=("irc",), cases=150))
    assert results.value("irc: parent", "+ speakers", "MRR@10").low > 0.60
    assert results.value("irc: parent", "recency", "MRR@10").high < 0.60
    assert results.value("irc: leakage", "+ speakers, slices", "share unseen").value == 0
