"""Test the graph of turns and what it is made from."""

import json
import re
from datetime import UTC, date, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from llama_index.core.llms import ChatMessage

from meve.conversation import Conversation, PlacedTurn, TurnGraph
from meve.conversation.graph import to_seconds
from meve.errors import DuplicateIdError, UnknownIdError, ValidationError
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.conversation.talks import make_conversation, records


def graph_of(messages):
    return Conversation.from_messages(messages).graph


def test_depths_siblings_and_sizes_of_the_debugging_conversation():
    graph = graph_of(records())
    at = graph.position
    assert graph.depths[[at("4"), at("8")]].tolist() == [3, 2]
    assert [graph.turns[n].id for n in graph.main_replies(at("2"))] == ["3", "5"]
    assert graph.siblings[[at("3"), at("5"), at("1")]].tolist() == [0, 1, 0]
    assert graph.replies[[at("2"), at("1"), at("4")]].tolist() == [2, 2, 0]
    assert graph.sizes[[at("1"), at("3"), at("7")]].tolist() == [9, 2, 2]
    assert [graph.turns[n].id for n in graph.path(at("6"))] == ["1", "2", "5", "6"]


def test_messages_without_parents_follow_each_other():
    graph = graph_of(["Hello", ("Ana", "Hi"), {"content": "Yes", "role": "user"}])
    assert graph.parents.tolist() == [-1, 0, 1]
    assert [turn.id for turn in graph.turns] == ["turn-0", "turn-1", "turn-2"]
    assert [turn.speaker for turn in graph.turns] == ["", "Ana", "user"]


def test_parent_may_come_after_its_reply():
    graph = graph_of([{"id": "b", "text": "reply", "parent": "a"}, {"id": "a", "text": "first", "parent": None}])
    assert [turn.id for turn in graph.turns] == ["a", "b"]


def test_latest_turn_of_messages_in_reverse_order_is_the_end_of_their_line():
    conversation = make_conversation(records()[::-1])
    assert conversation.latest == conversation.graph.turns[-1].id
    assert not conversation.graph.replies[-1]


def test_turn_with_two_parents_is_a_reply_to_both():
    graph = graph_of(
        [
            {"id": "a", "text": "a"},
            {"id": "b", "text": "b", "parent": None},
            {"id": "c", "text": "c", "parents": ["b", "a"]},
        ]
    )
    assert graph.children[:2] == ((2,), (2,))
    assert graph.all_parents(2) == (1, 0)
    assert graph.main_replies(0) == ()


def test_langchain_messages_keep_ids_speakers_and_named_parents():
    graph = graph_of(
        [
            SystemMessage("Be short.", id="s"),
            HumanMessage("Hi", id="h"),
            AIMessage([{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": "x"}], id="a"),
            AIMessage("Hello again", id="a2", additional_kwargs={"parent": "h", "time": "2026-01-01"}),
        ]
    )
    assert [(turn.id, turn.speaker, turn.text) for turn in graph.turns] == [
        ("s", "system", "Be short."), ("h", "user", "Hi"), ("a", "assistant", "Hello"),
        ("a2", "assistant", "Hello again"),
    ]  # fmt: skip
    assert graph.parents.tolist() == [-1, 0, 1, 1]
    assert graph.turns[3].time == "2026-01-01"


def test_llama_index_messages_keep_roles_and_named_parents():
    graph = graph_of(
        [
            ChatMessage(role="user", content="Hi", additional_kwargs={"id": "h"}),
            ChatMessage(role="assistant", content="Hello", additional_kwargs={"id": "a"}),
            ChatMessage(role="assistant", content="Hey", additional_kwargs={"parent": "h"}),
        ]
    )
    assert [(turn.speaker, turn.text) for turn in graph.turns] == [
        ("user", "Hi"), ("assistant", "Hello"), ("assistant", "Hey"),
    ]  # fmt: skip
    assert graph.parents.tolist() == [-1, 0, 0]


def chatgpt_export(**changes):
    def node(id, parent, role, text, time):
        message = {"author": {"role": role}, "create_time": time, "content": {"content_type": "text", "parts": [text]}}
        return {"id": id, "parent": parent, "message": message, "children": []}

    mapping = {
        "root": {"id": "root", "parent": None, "message": None, "children": ["q"]},
        "a2": node("a2", "q", "assistant", "Second try", 3.0),
        "q": node("q", "root", "user", "Why?", 1.0),
        "a1": node("a1", "q", "assistant", "First try", 2.0),
    }
    return {"title": "Why", "conversation_id": "c1", "current_node": "a1", "mapping": mapping, **changes}


def claude_export(**changes):
    def message(id, parent, sender, text):
        time = "2026-01-01T00:00:00Z"
        return {"uuid": id, "parent_message_uuid": parent, "sender": sender, "text": text, "created_at": time}

    messages = [
        message("q", "00000000-0000-4000-8000-000000000000", "human", "Why?"),
        message("a1", "q", "assistant", "First try"),
        message("a2", "q", "assistant", "Second try"),
    ]
    return {"uuid": "c2", "name": "Why", "chat_messages": messages, **changes}


@pytest.mark.parametrize("export", [chatgpt_export, claude_export])
@pytest.mark.parametrize("listed", [True, False])
def test_exports_keep_regenerated_answers_as_branches(tmp_path, export, listed):
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([export()] if listed else export()))
    conversation = Conversation.from_export(file)
    graph = conversation.graph
    assert [(turn.id, turn.text) for turn in graph.turns] == [("q", "Why?"), ("a1", "First try"), ("a2", "Second try")]
    assert graph.parents.tolist() == [-1, 0, 0]
    assert conversation.latest == ("a1" if export is chatgpt_export else "a2")
    assert graph.turns[0].speaker == "user"


def test_export_is_in_the_order_of_time_though_hidden_messages_have_none(tmp_path):
    """ChatGPT writes nodes in any order, and its hidden system messages without a time."""
    data = chatgpt_export()
    nodes = data["mapping"]
    hidden = {"author": {"role": "system"}, "create_time": None, "content": {"content_type": "text", "parts": [""]}}
    nodes["hidden"] = {"id": "hidden", "parent": "root", "message": hidden, "children": ["q"]}
    thought = {"author": {"role": "assistant"}, "create_time": None, "content": {"content_type": "thoughts"}}
    nodes["thought"] = {"id": "thought", "parent": "a2", "message": thought, "children": []}
    nodes["q"]["parent"] = "hidden"
    (tmp_path / "c.json").write_text(json.dumps(data))
    graph = Conversation.from_export(tmp_path / "c.json").graph
    assert [turn.id for turn in graph.turns] == ["hidden", "q", "a1", "a2", "thought"]


def test_claude_export_holds_results_of_tools_and_no_notes_on_them(tmp_path):
    data = claude_export()
    note = "Let me look.\n```\nThis block is not supported on your current device yet.\n```"
    blocks = [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "name": "read", "input": {}},
        {"type": "tool_result", "content": [{"type": "text", "text": "relay K7 stuck"}, {"type": "image"}]},
    ]  # fmt: skip
    data["chat_messages"][1] |= {"text": note, "content": blocks}
    (tmp_path / "c.json").write_text(json.dumps(data))
    assert Conversation.from_export(tmp_path / "c.json").graph.turns[1].text == "Let me look.\nrelay K7 stuck"


def test_claude_export_keeps_pasted_text_after_the_text_of_the_message(tmp_path):
    data = claude_export()
    noise = " ".join(f"Worker {n} started." for n in range(200))
    data["chat_messages"][0]["attachments"] = [
        {"file_name": "paste.log", "file_size": 99, "extracted_content": f"{noise} Relay K7 is stuck. {noise}"},
        {"file_name": "picture.png", "extracted_content": ""},
        {"file_name": "", "extracted_content": "A second paste."},
    ]
    data["chat_messages"][1]["attachments"] = None
    (tmp_path / "c.json").write_text(json.dumps(data))
    conversation = Conversation.from_export(tmp_path / "c.json", embedder=WordEmbedder(), tokens=WordCounter())
    first, second, _ = conversation.graph.turns
    assert first.text == f"Why?\npaste.log\n{noise} Relay K7 is stuck. {noise}\nA second paste."
    assert second.text == "First try"
    context = conversation.retrieve("Which relay K7 is stuck?", max_tokens=30, threshold=0.0)
    assert "Relay K7 is stuck." in context.text  # the turn is shortened to its best sentences, not dropped
    assert context.tokens <= 30


@pytest.mark.parametrize(
    "attachments", [3, [3], [{"extracted_content": 3}], [{"file_name": 3, "extracted_content": "x"}]]
)
def test_malformed_attachments_of_a_claude_export_are_a_clear_error(tmp_path, attachments):
    data = claude_export()
    data["chat_messages"][0]["attachments"] = attachments
    (tmp_path / "c.json").write_text(json.dumps(data))
    with pytest.raises(ValidationError, match=r"another format|content of turn 0"):
        Conversation.from_export(tmp_path / "c.json")


def test_messages_of_model_providers_keep_tool_calls_as_turns_without_text():
    graph = graph_of(
        [
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "w", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "21 C"},
            {"type": "function_call", "call_id": "d", "name": "w", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "d", "output": "22 C"},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "e", "content": "23 C"}]},
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "web_search_call", "id": "w", "status": "completed"},
        ]
    )
    assert [turn.text for turn in graph.turns] == ["Weather?", "", "21 C", "", "22 C", "23 C", "", ""]
    assert graph.parents.tolist() == [-1, 0, 1, 2, 3, 4, 5, 6]


def test_old_claude_export_without_parents_is_a_line(tmp_path):
    data = claude_export()
    for message in data["chat_messages"]:
        del message["parent_message_uuid"]
    (tmp_path / "c.json").write_text(json.dumps(data))
    assert Conversation.from_export(tmp_path / "c.json").graph.parents.tolist() == [-1, 0, 1]


def test_export_of_several_conversations_asks_for_one(tmp_path):
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([chatgpt_export(), claude_export()]))
    with pytest.raises(UnknownIdError, match="has 2; give the id of one of its 2, such as 'c1', 'c2'"):
        Conversation.from_export(file)
    with pytest.raises(UnknownIdError, match=r"conversation 'x'.*has none"):
        Conversation.from_export(file, "x")
    assert len(Conversation.from_export(file, "c2")) == 3


EMPTY = [
    {"uuid": "e", "chat_messages": None}, {"uuid": "e", "chat_messages": []}, {"id": "e", "mapping": None},
    {"id": "e", "mapping": {}}, {"uuid": "e", "name": "New chat"},
]  # fmt: skip


@pytest.mark.parametrize("empty", EMPTY)
def test_conversation_without_messages_is_read_as_an_empty_one(tmp_path, empty):
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([empty, chatgpt_export(), claude_export()]))
    assert len(Conversation.from_export(file, "c1")) == len(Conversation.from_export(file, "c2")) == 3
    assert len(Conversation.from_export(file, "e")) == 0


@pytest.mark.parametrize("empty", EMPTY[:-1])
def test_export_of_one_conversation_without_messages_is_empty(tmp_path, empty):
    (tmp_path / "c.json").write_text(json.dumps(empty))
    assert len(Conversation.from_export(tmp_path / "c.json")) == 0


@pytest.mark.parametrize("other", [{"id": "r", "text": "A record"}, {"id": "r", "mapping": 3}, "text"])
def test_export_that_mixes_conversations_with_anything_else_names_the_item(tmp_path, other):
    (tmp_path / "c.json").write_text(json.dumps([chatgpt_export(), other]))
    with pytest.raises(ValidationError, match=r"item 1 of the export .* is no conversation"):
        Conversation.from_export(tmp_path / "c.json", "c1")


def test_export_of_plain_records(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(records()))
    assert len(Conversation.from_export(tmp_path / "r.json")) == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON that can be read"),
        ('{"a": 1}', "holds the keys 'a': it must hold conversations"),
        ("[]", "holds list"),
        ('{"mapping": {"a": 1}}', "another format"),
        ('{"chat_messages": [{"text": "x"}]}', "another format: KeyError: 'uuid'"),
        ('{"mapping": {"a": {"message": {"content": {"parts": ["x"]}}, "parent": "b"}}}', "parent 'b', which is none"),
        ("[" * 100 + "]" * 100, "nested at most"),
    ],
)
def test_bad_export_is_a_clear_error(tmp_path, text, message):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ValidationError, match=re.escape(message)) as caught:
        Conversation.from_export(tmp_path / "bad.json")
    assert caught.value


def test_missing_export_is_a_clear_error(tmp_path):
    with pytest.raises(ValidationError, match="can't be read: No such file"):
        Conversation.from_export(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("messages", "error", "message"),
    [
        ("hello", ValidationError, "messages must be a list"),
        ([1], ValidationError, "turn 0 is 1"),
        ([{"role": "user"}], ValidationError, "neither text nor content, only the keys role:"),
        ([{"text": 1}], ValidationError, "text of turn 0"),
        ([{"text": "a\ud800"}], ValidationError, "UTF-8"),
        ([{"text": "a", "id": "x"}, {"text": "b", "id": "x"}], DuplicateIdError, "turns 0 and 1 have the same id 'x'"),
        ([{"text": "a", "parent": "z"}], UnknownIdError, "names the parent 'z'"),
        ([{"text": "a", "id": "x", "parent": "x"}], ValidationError, "in a circle, nor to themselves: 'x'"),
        (
            [{"text": "a", "id": "x", "parent": "y"}, {"text": "b", "id": "y", "parent": "x"}],
            ValidationError,
            "in a circle",
        ),
        ([{"text": "a", "id": 1.5}], ValidationError, "id of turn 0"),
        ([{"text": "a", "id": " "}], ValidationError, "isn't blank"),
        ([{"text": "a", "parent": 1.5}], ValidationError, "parent of turn 0"),
        ([{"text": "a", "time": []}], ValidationError, "time of turn 0"),
        ([{"text": "a", "time": 1e300}], ValidationError, "seconds since 1970"),
        ([{"text": "a", "phase": 1}], ValidationError, "phase of turn 0"),
        ([PlacedTurn(id="a", text=1)], ValidationError, "text of turn 0"),
        ([PlacedTurn(id="a", text="a", parents=(1.5,))], ValidationError, "parents of turn 0"),
        ([{"content": 1}], ValidationError, "content of turn 0"),
    ],
)
def test_bad_message_is_a_clear_error(messages, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Conversation.from_messages(messages)


def test_failed_extension_changes_nothing():
    conversation = make_conversation()
    with pytest.raises(DuplicateIdError):
        conversation.extend([{"id": "10", "text": "new"}, {"id": "1", "text": "old id"}])
    assert len(conversation) == 9
    assert conversation.latest == "9"


def test_extension_replies_to_the_latest_turn():
    conversation = make_conversation()
    conversation.extend(["Let me see."])
    assert conversation.graph.turns[-1].parents == ("9",)


def test_unknown_turn_is_named_with_some_that_exist():
    with pytest.raises(UnknownIdError, match="no turn 'x': the conversation has 9 turns, such as '1', '2', '3'"):
        graph_of(records()).position("x")


def test_times_are_read_and_unknown_ones_lie_between():
    turns = [
        PlacedTurn(id="a", text="a", time=datetime(2026, 1, 1, tzinfo=UTC)),
        PlacedTurn(id="b", text="b", time="some day"),
        PlacedTurn(id="c", text="c", time=date(2026, 1, 2)),
    ]
    seconds = TurnGraph.from_turns(turns).seconds
    assert (seconds - seconds[0]).tolist() == [0, 43_200, 86_400]
    assert to_seconds("2026-01-01T01:00+01:00") == seconds[0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(min_value=-1, max_value=30), min_size=1, max_size=30), st.randoms())
def test_parents_come_first_and_added_turns_move_none(parents, random):
    turns = [
        PlacedTurn(id=str(n), text="x", parents=() if p < 0 or p >= n else (str(p),)) for n, p in enumerate(parents)
    ]
    half = len(turns) // 2
    first = turns[:half]
    random.shuffle(first)
    before, after = TurnGraph.from_turns(first), TurnGraph.from_turns([*first, *turns[half:]])
    assert after.turns[:half] == before.turns
    assert all(parent < n for n, parent in enumerate(after.parents.tolist()))
    assert sorted(turn.id for turn in after.turns) == sorted(turn.id for turn in turns)


edges = st.lists(st.sets(st.integers(0, 30), max_size=2), min_size=1, max_size=30)


@settings(max_examples=80, deadline=None)
@given(edges, st.lists(st.integers(0, 30)), st.lists(st.booleans(), min_size=30, max_size=30), st.randoms())
def test_conversation_that_grows_equals_one_made_at_once(parents, cuts, timed, random):
    """Whatever the branches, the batches and their order: each array of the graph, and each coordinate."""
    words = ["login token", "Ana, at 10:30", "", "why; because"]
    turns = [
        {"id": str(n), "text": words[n % 4], "parents": [str(p) for p in sorted(up) if p < n],
         "time": f"2026-01-{n + 1:02}" if timed[n] else None}
        for n, up in enumerate(parents)
    ]  # fmt: skip
    bounds = [0, *sorted(cut for cut in cuts if cut < len(turns)), len(turns)]
    batches = [turns[a:b] for a, b in pairwise(bounds)]
    for batch in batches:
        random.shuffle(batch)
    grown = make_conversation([])
    for batch in batches:
        grown.extend(batch)
        if random.random() < 0.5:
            grown.coordinates  # noqa: B018 - read in between
    whole = make_conversation([turn for batch in batches for turn in batch])
    assert grown.graph.turns == whole.graph.turns
    assert grown.graph.positions == whole.graph.positions
    assert grown.graph.children == whole.graph.children
    for name in ("parents", "depths", "siblings", "replies", "forks", "sizes", "times", "seconds"):
        np.testing.assert_array_equal(getattr(grown.graph, name), getattr(whole.graph, name), err_msg=name)
    np.testing.assert_array_equal(grown.coordinates.values, whole.coordinates.values)
    np.testing.assert_array_equal(grown.coordinates.components, whole.coordinates.components)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 30), min_size=1, max_size=30))
def test_counts_of_a_graph_say_what_they_mean(parents):
    turns = [PlacedTurn(id=str(n), text="x", parents=(str(p),) if 0 <= p < n else ()) for n, p in enumerate(parents)]
    graph = TurnGraph.from_turns(turns)
    for n in range(len(turns)):
        path = graph.path(n)
        assert graph.depths[n] == len(path) - 1
        assert graph.replies[n] == len(graph.main_replies(n))
        assert graph.forks[n] == sum(len(graph.main_replies(at)) > 1 for at in path)
        assert graph.sizes[n] == sum(n in graph.path(other) for other in range(len(turns)))
