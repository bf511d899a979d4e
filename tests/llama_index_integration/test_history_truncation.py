"""Truncating a history: the limit holds, it begins with the user, and tool results follow their calls."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, TextBlock

from llama_index_meve._history_truncation import HistoryWindow, truncate_history
from llama_index_meve._message_content import answered_call_id, role_of, tool_call_ids
from llama_index_meve._message_counter import MEDIA_TOKENS, MESSAGE_OVERHEAD, MessageCounter
from meve.testing.fakes import WordCounter
from tests.llama_index_integration.chat_helpers import system, texts, user

COUNTER = MessageCounter(WordCounter())


def model(text="", *ids):
    blocks = [TextBlock(text=text)] if text else []
    blocks += [types.ToolCallBlock(tool_call_id=name, tool_name="look", tool_kwargs={"at": "it"}) for name in ids]
    return ChatMessage(role="assistant", blocks=blocks)


def result(name, text="seen"):
    return ChatMessage(text, role="tool", additional_kwargs={"tool_call_id": name})


def window(messages, limit=1_000, reserve=0):
    result_window = truncate_history(messages, COUNTER, limit, reserve)
    shown = result_window.with_memory("")
    assert result_window.tokens == sum(map(COUNTER.count_message, shown)) <= limit
    return shown


TURN = st.lists(
    st.one_of(
        st.builds(lambda n: [model("word " * n)], st.integers(1, 12)),
        st.builds(lambda n: [model("", "c"), result("c", "seen " * n)], st.integers(1, 12)),
        st.builds(lambda n: [model("", "d", "e"), result("d"), result("e", "seen " * n)], st.integers(1, 12)),
        st.just([model("", "lost")]),
        st.just([result("nowhere")]),
        st.just([system("note")]),
    ),
    max_size=4,
)
TURNS = st.lists(st.tuples(st.integers(0, 30), TURN), max_size=6)


@given(turns=TURNS, limit=st.integers(0, 120), reserve=st.integers(0, 40))
def test_any_history_is_truncated_to_valid_turns_within_the_limit(turns, limit, reserve):
    messages = [m for words, steps in turns for m in [*([user("word " * words)] if words else []), *chain(*steps)]]
    given_ = [message.model_copy(deep=True) for message in messages]
    shown = window(messages, limit, reserve)
    assert messages == given_
    spoken = [m for m in shown if m.role.value != "system"]
    assert all(role_of(m) == "user" for m in spoken[:1])
    assert all(m.role.value != "system" for m in shown[1:])
    for n, message in enumerate(spoken):
        under_way = n == len(spoken) - 1
        behind = []
        while n + 1 + len(behind) < len(spoken) and spoken[n + 1 + len(behind)].role.value == "tool":
            behind.append(answered_call_id(spoken[n + 1 + len(behind)]))
        if message.role.value != "tool":
            assert behind == tool_call_ids(message) or (under_way and not behind)


def test_whole_turns_are_kept_from_the_end():
    messages = [user("one"), model("two"), user("three"), model("four"), user("five")]
    five = MESSAGE_OVERHEAD + 1
    assert texts(window(messages)) == ["one", "two", "three", "four", "five"]
    assert texts(window(messages, 5 * five - 1)) == ["three", "four", "five"]
    assert texts(window(messages, 3 * five - 1)) == ["five"]
    assert texts(window(messages, 5 * five, reserve=1)) == ["three", "four", "five"]
    assert texts(window(messages, five, reserve=five)) == ["five"]


def test_messages_before_the_first_user_message_are_dropped():
    assert texts(window([model("Hello!"), user("Hi."), model("Well?")])) == ["Hi.", "Well?"]
    assert window([model("Hello!")]) == []


def test_instructions_are_merged_and_kept():
    messages = [system("Be brief."), user("word " * 50), model("ok"), system("Be kind."), user("last")]
    assert texts(window(messages, 30)) == ["Be brief.\nBe kind.", "last"]
    pinned = truncate_history([user("last")], COUNTER, 30, pinned=[system("Be brief.")])
    assert texts(pinned.with_memory("facts")) == ["Be brief.\nfacts", "last"]
    assert texts(HistoryWindow().with_memory("facts")) == ["facts"]
    assert HistoryWindow().with_memory("") == []


def test_long_instructions_leave_half_the_limit_to_the_last_turn():
    first, last = window([system("rule " * 100), user("word " * 100)], 60)
    assert (COUNTER.count_message(first), COUNTER.count_message(last)) == (30, 30)
    assert first.content.endswith("rule …")
    assert last.content.endswith("word …")


def test_instructions_and_steps_leave_the_user_what_the_least_part_of_the_message_needs():
    """A picture can't be cut, and half of the limit may be too little for it."""
    counter = MessageCounter(WordCounter(), {"image": 30})
    asked = ChatMessage(role="user", blocks=[types.ImageBlock(url="http://x/y")])
    shown = truncate_history([system("rule " * 100), asked], counter, 50)
    assert [block.block_type for block in shown.turns[0].blocks] == ["image"]
    assert counter.count_message(shown.system) == 50 - 34
    steps = [m for n in range(5) for m in (model("", str(n)), result(str(n), "seen " * 10))]
    assert truncate_history([asked, *steps], counter, 50).turns[0].blocks[0].block_type == "image"


def test_tool_results_stay_with_their_calls():
    conversation = [user("go"), model("", "a", "b"), result("a"), result("b"), model("done")]
    assert window(conversation) == conversation
    assert window([user("go"), model("", "a", "b"), result("a"), model("done")]) == [conversation[0], conversation[4]]
    assert window([user("go"), result("a"), model("done")]) == [conversation[0], conversation[4]]
    assert window([*conversation, user("again"), model("", "z")])[-1] == model("", "z")
    other = [user("go"), model("", "a"), result("zzz"), model("done")]
    assert window(other) == [conversation[0], conversation[4]]


def test_tool_calls_in_provider_format_are_matched():
    class Call:
        id = "a"

    for call in ({"id": "a"}, Call()):
        head = ChatMessage(role="assistant", blocks=[], additional_kwargs={"tool_calls": [call]})
        assert window([user("go"), head, result("a")])[1:] == [head, result("a")]
        assert window([user("go"), head, result("zzz"), user("on")]) == [user("go"), user("on")]
    unnamed = [user("go"), model("", None), ChatMessage("seen", role="function"), model("done")]
    assert window(unnamed) == unnamed


def test_long_turn_keeps_its_question_and_last_steps():
    steps = [m for n in range(5) for m in (model("", str(n)), result(str(n), "seen " * 10))]
    messages = [user("go"), *steps]
    shown = window([user("a"), model("b"), *messages], 70)
    assert [shown[0].content, *(answered_call_id(m) for m in shown[2::2])] == ["go", "3", "4"]
    cut = window([user("go"), model("", "1"), result("1", "seen " * 100)], 40)
    assert (cut[0].content, cut[2].content[-6:]) == ("go", "seen …")


def test_older_turn_loses_its_oldest_tool_calls_first_and_keeps_question_and_answer():
    steps = [m for n in range(5) for m in (model("", str(n)), result(str(n), "seen " * 10))]
    turn = [user("go"), *steps, model("done")]
    shown = window([user("before"), model("that"), *turn, user("and then")], 70)
    assert texts([shown[0], *shown[-2:]]) == ["go", "done", "and then"]
    assert [answered_call_id(m) for m in shown if m.role.value == "tool"] == ["3", "4"]
    assert texts(window([*turn, user("and then")], 20)) == ["go", "done", "and then"]
    assert texts(window([*turn[:-1], model("done " * 20), user("and then")], 20)) == ["and then"]


def test_every_kind_of_block_is_counted():
    media = {"image": types.ImageBlock(url="http://x/y.png"), "audio": types.AudioBlock(url="http://x/y.mp3")}
    media |= {
        "video": types.VideoBlock(url="http://x/y.mp4"),
        "document": types.DocumentBlock(url="http://x/y.pdf", title="t"),
    }
    for kind, block in media.items():
        assert COUNTER.count_block(block) == MEDIA_TOKENS[kind] + (kind == "document")
        assert MessageCounter(WordCounter(), {kind: 7}).count_block(block) == 7 + (kind == "document")
    cited = types.CitationBlock(
        cited_content=TextBlock(text="one two"), source="s", title="t", additional_location_info={"page": 1}
    )
    assert COUNTER.count_block(cited) == MESSAGE_OVERHEAD + 4
    nested = types.CitableBlock(title="t", source="s", content=[types.ImageBlock(url="http://x/y.png")])
    assert COUNTER.count_block(nested) == MESSAGE_OVERHEAD + 2 + MEDIA_TOKENS["image"]
    assert COUNTER.count_block(types.ThinkingBlock(content="one two", num_tokens=30)) == 30
    assert COUNTER.count_block(types.ThinkingBlock(content="one two", additional_information={"signature": "abc"})) == 4
    assert COUNTER.count_block(types.CachePoint(cache_control=types.CacheControl(type="ephemeral"))) == 0
    assert (
        COUNTER.count_message(ChatMessage("one", additional_kwargs={"name": "two three"})) == MESSAGE_OVERHEAD + 1 + 3
    )

    class New(TextBlock):
        block_type: str = "hologram"

    class Newer(types.CacheControl):
        type: str = "of a kind that isn't known"

    assert COUNTER.count_block(Newer()) >= 5
    assert COUNTER.count_block(New(text="one two")) == 2


@pytest.mark.parametrize("limit", range(MESSAGE_OVERHEAD, 40))
def test_truncated_message_fits_and_keeps_its_beginning(limit):
    messages = ChatMessage(role="user", blocks=[TextBlock(text="a b c d e f"), TextBlock(text="g h i j k l m n o p")])
    shortened = COUNTER.truncate_message(messages, limit)
    if shortened is None:
        assert limit < MESSAGE_OVERHEAD + 2
        return
    assert COUNTER.count_message(shortened) <= limit
    assert messages.content.startswith(shortened.content.removesuffix(" …"))
    assert COUNTER.count_message(shortened) >= min(limit, MESSAGE_OVERHEAD + 16) - 1  # an ellipsis alone costs a token


def test_large_pictures_are_dropped_and_tool_calls_never_cut():
    picture = ChatMessage(role="user", blocks=[types.ImageBlock(url="http://x/y.png"), TextBlock(text="What is it?")])
    assert [b.block_type for b in window([picture], 50)[0].blocks] == ["text"]
    assert COUNTER.truncate_message(model("word " * 90, "a"), 50) is None


def test_repeated_text_is_counted_once():
    counted = []

    class Counter(WordCounter):
        def count(self, text):
            counted.append(text)
            return super().count(text)

    counter = MessageCounter(Counter())
    assert [counter.count_text("one two"), counter.count_text("one two"), counter.count_text("")] == [2, 2, 0]
    assert counted == ["one two"]
