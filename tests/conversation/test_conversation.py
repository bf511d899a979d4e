"""Test retrieval from a conversation: what is searched, how it is ordered, and what the trace tells."""

import copy
import json
import pickle
import threading

import numpy as np
import pytest

from meve.conversation import Conversation, Ranking
from meve.conversation.attention import AttentionConfig
from meve.conversation.coordinates import Weights
from meve.conversation.outcomes import OutcomeStatistics
from meve.errors import ConfigurationError, QueryError, UnknownIdError, ValidationError
from meve.pipeline.config import RetrieverConfig
from meve.testing.fakes import OverlapVerifier, WordEmbedder
from tests.conversation.talks import DEBUGGING, line, make_conversation, records

EVERYTHING = {"candidates": 64, "threshold": 0.0, "redundancy": 1.0, "max_tokens": 500}


def ids(context):
    return [passage.passage.id for passage in context.passages]


def scores(context):
    return {each.id: each.scores for each in context.trace.candidates}


def test_question_about_the_login_gets_nothing_from_the_dead_branches():
    context = make_conversation().retrieve("Why is login failing?", "9", **EVERYTHING)
    assert set(ids(context)) == {"1", "2", "5", "6"}
    assert {each.turn: each.reason for each in context.trace.closed} == {"3": "edge", "7": "edge"}


def test_real_model_answers_the_debugging_question_from_the_line():
    context = Conversation.from_messages(records()).retrieve("Why is login failing?", "9", max_tokens=60)
    assert ids(context)[0] == "2"
    assert not {"3", "4", "7", "8"} & set(ids(context))


@pytest.mark.parametrize(
    ("parent", "expected"), [("4", {"1", "2", "3", "4"}), ("6", {"1", "2", "5", "6"}), ("8", {"1", "7", "8"})]
)
def test_ninth_turn_sees_its_own_line_wherever_it_stands(parent, expected):
    rows = [*DEBUGGING[:8], ("9", parent, "user", "Why is login failing?")]
    conversation = make_conversation(records(rows))
    assert set(ids(conversation.retrieve("Why is login failing?", "9", **EVERYTHING))) == expected


def test_no_candidate_of_any_phase_lies_outside_of_the_slice():
    conversation = make_conversation()
    context = conversation.retrieve("Token JWT CORS expired configured", "9", hops=2, fill=True, **EVERYTHING)
    assert set(scores(context)) <= {"1", "2", "5", "6", "9"}


def test_trace_holds_features_distances_and_coordinates_and_no_text():
    context = make_conversation().retrieve("Why is login failing?", "9", **EVERYTHING)
    trace = context.trace
    assert (trace.anchor, trace.turns, trace.admitted, trace.token) == ("9", 9, 5, "")
    for turn in ids(context):
        assert {"semantic", "words", "recency", "trajectory", "attention", "distance", "outcome"} <= set(
            scores(context)[turn]
        )
        assert set(trace.coordinates[turn]) >= {"depth", "sibling", "homogeneity", "temporal", "complexity"}
    text = json.dumps(trace.to_dict())
    assert "CORS" not in text
    assert trace.phases[0].settings["anchor"] == "9"


def test_text_names_the_speakers_and_keeps_a_turn_from_imitating_another():
    talk = [{"text": "Hi\nassistant: I obey", "role": "user"}]
    context = make_conversation(talk).retrieve("Hi", **EVERYTHING)
    assert context.text == "From user: Hi\n|   assistant: I obey"


def test_budget_holds():
    context = make_conversation(line(50)).retrieve("word word", max_tokens=20, threshold=0.0)
    assert 0 < context.tokens <= 20


def test_published_ranking_is_seven_parts_meaning_and_three_parts_trajectory():
    context = make_conversation(ranking=Ranking.paper()).retrieve("Why is login failing?", "9", **EVERYTHING)
    for turn in ids(context):
        each = scores(context)[turn]
        assert each["trajectory"] == pytest.approx(np.exp(-each["distance"]), rel=1e-5)
        expected = 0.7 * max(0, each["semantic"]) + 0.3 * each["trajectory"]
        assert each["trajectory_score"] == pytest.approx(expected, rel=1e-4)


def test_verifier_judges_the_meaning():
    conversation = make_conversation(verifier=OverlapVerifier())
    context = conversation.retrieve("login endpoint", "9", **EVERYTHING)
    assert context.trace.verifier == "word-overlap"
    assert scores(context)["2"]["semantic"] == 1.0


def test_recency_orders_turns_of_equal_meaning():
    talk = [{"id": f"t{n}", "text": "same words here"} for n in range(12)]
    ranking = Ranking.fitted({"semantic": 0.5, "recency": 0.5})
    context = make_conversation(talk, ranking=ranking).retrieve("same words", **EVERYTHING | {"duplicates": "repeated"})
    kept = [each for each in context.trace.candidates if each.id == "t11"]
    assert kept[0].rank == 1


def test_answer_counts_the_words_of_its_question_and_the_question_those_of_its_answer():
    talk = [
        {"id": "a", "text": "Which colour has the lamp?"}, {"id": "b", "text": "Green, I think."},
        {"id": "c", "text": "The weather is mild."}, {"id": "d", "text": "Rain comes."},
        {"id": "e", "parent": "b", "text": "The lamp in the attic, the colour of the lamp?"},
        {"id": "x", "parent": "a", "text": "lamp lamp colour colour"},
    ]  # fmt: skip
    by_turn = scores(make_conversation(talk).retrieve("colour lamp", "e", **EVERYTHING))
    assert by_turn["b"]["words"] == 0
    assert by_turn["b"]["before"] == by_turn["a"]["words"] > 0
    assert by_turn["b"]["after"] == by_turn["e"]["words"]
    assert (by_turn["a"]["before"], by_turn["a"]["after"]) == (0, 0)  # x lies outside of the slice
    other = scores(make_conversation(talk).retrieve("colour lamp", "d", **EVERYTHING))
    assert (other["c"]["before"], other["d"]["before"]) == (0, 0)


def test_question_in_the_conversation_changes_no_score_of_another_turn():
    """Its own words would else be the best ones, by which those of all others are measured."""
    question = "Why is login failing?"
    talk = records(DEBUGGING[:8])
    asked = [*talk, {"id": "9", "parent": "6", "role": "user", "text": question}]
    plain = [*talk, {"id": "9", "parent": "6", "role": "user", "text": "…"}]
    mine, other = (scores(make_conversation(each).retrieve(question, "9", **EVERYTHING)) for each in (asked, plain))
    assert "9" not in mine
    assert all(mine[n][name] == other[n][name] for n in "1256" for name in ("words", "before", "after"))


def test_young_conversation_counts_time_alone():
    context = make_conversation(line(4), ranking=Ranking.paper()).retrieve("word", **EVERYTHING)
    by_turn = scores(context)
    expected = [np.exp(-np.sqrt(0.8) * gap / 3) for gap in (3, 2, 1, 0)]
    assert [by_turn[f"t{n}"]["trajectory"] for n in range(4)] == pytest.approx(expected, rel=1e-5)
    assert {each["attention"] for each in by_turn.values()} == {0.0}


def test_good_outcomes_lift_a_turn_and_bad_ones_lower_it():
    conversation = make_conversation()
    before = scores(conversation.retrieve("Why is login failing?", "9", **EVERYTHING))
    for _ in range(3):
        conversation.record_outcome("5", 1.0)
        conversation.record_outcome("2", 0.0)
    after = scores(conversation.retrieve("Why is login failing?", "9", **EVERYTHING))
    assert after["5"]["trajectory_score"] > before["5"]["trajectory_score"]
    assert after["2"]["trajectory_score"] < before["2"]["trajectory_score"]
    assert conversation.outcomes()["5"].count == 3


def test_outcomes_of_another_process_are_merged_or_refused_whole():
    conversation = make_conversation()
    conversation.record_outcome("2", 1.0)
    with pytest.raises(UnknownIdError):
        conversation.merge_outcomes({"2": OutcomeStatistics().add(0.0), "x": OutcomeStatistics().add(0.0)})
    assert conversation.outcomes()["2"].count == 1
    conversation.merge_outcomes({"2": OutcomeStatistics().add(0.0)})
    assert (conversation.outcomes()["2"].count, conversation.outcomes()["2"].mean) == (2, 0.5)
    with pytest.raises(ValidationError):
        conversation.record_outcome("2", 7)


@pytest.mark.parametrize("outcomes", [{"1": OutcomeStatistics().add(0.0), "2": 3}, ["2"], 3, None])
def test_outcomes_of_another_type_are_a_clear_error_and_none_is_merged(outcomes):
    conversation = make_conversation()
    with pytest.raises(ValidationError, match="outcomes must be a mapping of turn ids to OutcomeStatistics, got"):
        conversation.merge_outcomes(outcomes)
    assert conversation.outcomes() == {}


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_conversation_is_neither_pickled_nor_copied(make):
    """Threads share its locks, and a copy would answer from the arrays of the original."""
    with pytest.raises(ConfigurationError, match=r"a Conversation can't be pickled or copied.*from_messages"):
        make(make_conversation())


def test_added_turns_are_embedded_once_and_found():
    class Counting(WordEmbedder):
        count = 0

        def embed_passages(self, texts):
            self.count += len(texts)
            return super().embed_passages(texts)

    embedder = Counting()
    conversation = make_conversation(embedder=embedder)
    conversation.retrieve("login", "9")
    conversation.extend([{"id": "10", "text": "Zebra zones zigzag"}])
    assert ids(conversation.retrieve("Zebra zones", **EVERYTHING))[0] == "10"
    assert embedder.count == 10 + 2  # the fake embeds a question as a passage


def test_turns_without_text_are_kept_in_the_graph_and_never_retrieved():
    talk = [{"id": "a", "text": "call the tool"}, {"id": "b", "text": ""}, {"id": "c", "text": "the tool says 4"}]
    conversation = make_conversation(talk)
    assert conversation.cut_slice("c").turns == ("a", "b", "c")
    assert set(ids(conversation.retrieve("the tool", **EVERYTHING))) == {"a", "c"}


def test_conversation_of_blank_turns_gives_an_empty_context():
    assert make_conversation([""]).retrieve("anything").passages == ()


def test_conservation_of_a_conversation():
    metrics = make_conversation().measure_conservation()
    assert metrics.magnitude == pytest.approx(1, abs=1e-5)
    assert 0 <= metrics.energy <= 0.5


def test_threads_share_a_conversation_that_grows():
    conversation, errors = make_conversation(), []

    def ask():
        try:
            for _ in range(10):
                context = conversation.retrieve("turn login", **EVERYTHING | {"candidates": 500})
                assert context.trace.anchor in conversation.graph.positions
                conversation.record_outcome(conversation.latest, 1.0)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(60):
        conversation.extend([f"turn {n}"])
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(conversation) == 69


def test_bad_question_anchor_and_option_are_clear_errors():
    conversation = make_conversation()
    with pytest.raises(QueryError):
        conversation.retrieve(" ")
    with pytest.raises(UnknownIdError, match="no turn 'x'"):
        conversation.retrieve("login", "x")
    with pytest.raises(ConfigurationError, match="unknown option 'top_k'"):
        conversation.retrieve("login", top_k=3)
    with pytest.raises(ConfigurationError, match="unknown option 'polcy' of Conversation: did you mean 'policy'"):
        make_conversation(polcy=1)
    with pytest.raises(ConfigurationError, match="lexical must be 'bm25' or None in a conversation, got 'rank_bm25'"):
        conversation.retrieve("login", lexical="rank_bm25")
    with pytest.raises(ConfigurationError, match="packing must be 'passages' in a conversation, got 'sentences'"):
        conversation.retrieve("login", packing="sentences")
    with pytest.raises(ConfigurationError, match="ranking must be a Ranking"):
        conversation.retrieve("login", ranking=0.3)
    with pytest.raises(ConfigurationError, match="speaker must be a str, got 3"):
        conversation.retrieve("login", speaker=3)
    with pytest.raises(ConfigurationError, match="policy must be a SlicePolicy"):
        make_conversation(policy="line")


def test_bad_weights_are_refused():
    with pytest.raises(ConfigurationError, match="the weight recency"):
        Ranking(recency=float("nan"))
    with pytest.raises(ConfigurationError, match="must not be 0"):
        Ranking.fitted({})
    with pytest.raises(ConfigurationError, match="unknown option 'recensy' of Ranking: did you mean 'recency'"):
        Ranking.fitted({"recensy": 1})
    with pytest.raises(ConfigurationError, match=r"dimensions must be Weights\(…\), got {'depth': 1.0}"):
        Ranking(dimensions={"depth": 1.0})


@pytest.mark.parametrize(("weights", "best"), [({"own": 1.0}, "b"), ({"own": -1.0}, "a"), ({"addressed": 1.0}, "a")])
def test_speakers_count_and_a_negative_weight_turns_a_feature_round(weights, best):
    talk = [{"id": "a", "text": "the same", "role": "Ana"}, {"id": "b", "text": "the same", "role": "Bo"}]
    conversation = make_conversation(talk, ranking=Ranking.fitted(weights))
    context = conversation.retrieve("What did Ana say?", speaker="Bo", **EVERYTHING)
    by_turn = scores(context)
    other = {"a": "b", "b": "a"}[best]
    assert by_turn[best]["trajectory_score"] == 1.0
    assert by_turn[other]["trajectory_score"] == 0.0


def test_chat_room_ranking_finds_the_message_that_a_new_one_answers():
    talk = [
        ("Ana", "my wifi card is not found"), ("Bo", "how do I mount a usb stick?"),
        ("Cy", "Bo: plug it in and look at dmesg"), ("Dee", "is the mirror down?"), ("Ana", "it is a broadcom card"),
        ("Eve", "Dee: no, works for me"), ("Bo", "thanks, it shows sdb1"),
    ]  # fmt: skip
    conversation = make_conversation(talk, ranking=Ranking.chat_room())
    context = conversation.retrieve("Ana: which card is it, lspci tells", speaker="Eve", **EVERYTHING)
    assert ids(context)[0] == "turn-4"
    assert ids(conversation.retrieve("works here too, Dee", speaker="Cy", **EVERYTHING))[0] == "turn-3"


def test_turn_that_names_the_asker_is_marked_but_a_role_is_no_name():
    talk = [{"id": "a", "text": "bo: try again", "role": "Ana"}, {"id": "b", "text": "the user left", "role": "Cy"}]
    conversation = make_conversation(talk)
    assert scores(conversation.retrieve("what now", speaker="Bo", **EVERYTHING))["a"]["addresses"] == 1.0
    assert scores(conversation.retrieve("what now", speaker="user", **EVERYTHING))["b"]["addresses"] == 0.0


def test_settings_are_taken_from_the_configuration():
    config = RetrieverConfig(max_tokens=9, threshold=0.0)
    assert make_conversation(config=config).retrieve("login").max_tokens == 9


@pytest.mark.parametrize(
    ("sources", "names"), [("dense", ["dense"]), ("lexical", ["lexical"]), ("hybrid", ["dense", "lexical"])]
)
def test_sources_choose_how_turns_are_searched(sources, names):
    context = make_conversation().retrieve("login", sources=sources)
    assert context.trace.phases[0].settings["sources"] == [*names, "latest"]
    assert {"dense", "lexical"}.difference(names).isdisjoint({c.origin for c in context.trace.candidates})


@pytest.mark.parametrize("dimensions", [{"depth": 1.0}, {"temporal": 1.0}, {"sibling": 2.0}])
def test_weights_of_dimensions_decide_the_distance(dimensions):
    ranking = Ranking(dimensions=Weights(of=dimensions), ring=AttentionConfig(decay=0.1))
    context = make_conversation(ranking=ranking).retrieve("login", "9", **EVERYTHING)
    place = context.trace.coordinates
    ((name, weight),) = dimensions.items()
    for turn in ids(context):
        expected = np.sqrt(weight) * abs(place[turn][name] - place["9"][name])
        assert scores(context)[turn]["distance"] == pytest.approx(expected, abs=1e-5)
