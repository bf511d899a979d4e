"""Which messages stand before the model: never too many, a user's first, tools' results behind their calls."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)

from llama_index_meve._history_window import Window, windowed
from llama_index_meve._token_limit import MEDIA, OVERHEAD, MessageCounter
from llama_index_meve._turns import answered_call, calls, role_of
from meve.testing.fakes import WordCounter

COUNT = MessageCounter(WordCounter())


def user(text):
    return ChatMessage(text)


def model(text="", *ids):
    blocks = [TextBlock(text=text)] if text else []
    blocks += [ToolCallBlock(tool_call_id=name, tool_name="look", tool_kwargs={"at": "it"}) for name in ids]
    return ChatMessage(role="assistant", blocks=blocks)


def result(name, text="seen"):
    return ChatMessage(text, role="tool", additional_kwargs={"tool_call_id": name})


def system(text):
    return ChatMessage(text, role="system")


def window(messages, limit=1_000, reserve=0):
    made = windowed(messages, COUNT, limit, reserve)
    shown = made.with_memory("")
    assert made.tokens == sum(map(COUNT.message, shown)) <= limit
    return shown


def texts(messages):
    return [message.content for message in messages]


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
def test_whatever_was_said(turns, limit, reserve):
    said = [m for words, steps in turns for m in [*([user("word " * words)] if words else []), *chain(*steps)]]
    given_ = [message.model_copy(deep=True) for message in said]
    shown = window(said, limit, reserve)
    assert said == given_
    spoken = [m for m in shown if m.role.value != "system"]
    assert all(role_of(m) == "user" for m in spoken[:1])
    assert all(m.role.value != "system" for m in shown[1:])
    for n, message in enumerate(spoken):
        under_way = n == len(spoken) - 1
        behind = []
        while n + 1 + len(behind) < len(spoken) and spoken[n + 1 + len(behind)].role.value == "tool":
            behind.append(answered_call(spoken[n + 1 + len(behind)]))
        if message.role.value != "tool":
            assert behind == calls(message) or (under_way and not behind)


def test_whole_turns_from_the_end():
    said = [user("one"), model("two"), user("three"), model("four"), user("five")]
    five = OVERHEAD + 1
    assert texts(window(said)) == ["one", "two", "three", "four", "five"]
    assert texts(window(said, 5 * five - 1)) == ["three", "four", "five"]
    assert texts(window(said, 3 * five - 1)) == ["five"]
    assert texts(window(said, 5 * five, reserve=1)) == ["three", "four", "five"]
    assert texts(window(said, five, reserve=five)) == ["five"]


def test_nothing_before_a_user_speaks():
    assert texts(window([model("Hello!"), user("Hi."), model("Well?")])) == ["Hi.", "Well?"]
    assert window([model("Hello!")]) == []


def test_instructions_become_one_and_stay():
    said = [system("Be brief."), user("word " * 50), model("ok"), system("Be kind."), user("last")]
    assert texts(window(said, 30)) == ["Be brief.\nBe kind.", "last"]
    pinned = windowed([user("last")], COUNT, 30, pinned=[system("Be brief.")])
    assert texts(pinned.with_memory("facts")) == ["Be brief.\nfacts", "last"]
    assert texts(Window().with_memory("facts")) == ["facts"]
    assert Window().with_memory("") == []


def test_instructions_that_are_too_long_leave_the_last_turn_half():
    first, last = window([system("rule " * 100), user("word " * 100)], 60)
    assert (COUNT.message(first), COUNT.message(last)) == (30, 30)
    assert first.content.endswith("rule …")
    assert last.content.endswith("word …")


def test_results_stay_with_their_calls():
    called = [user("go"), model("", "a", "b"), result("a"), result("b"), model("done")]
    assert window(called) == called
    assert window([user("go"), model("", "a", "b"), result("a"), model("done")]) == [called[0], called[4]]
    assert window([user("go"), result("a"), model("done")]) == [called[0], called[4]]
    assert window([*called, user("again"), model("", "z")])[-1] == model("", "z")
    other = [user("go"), model("", "a"), result("zzz"), model("done")]
    assert window(other) == [called[0], called[4]]


def test_calls_in_the_form_of_a_providers_client():
    class Call:
        id = "a"

    for call in ({"id": "a"}, Call()):
        head = ChatMessage(role="assistant", blocks=[], additional_kwargs={"tool_calls": [call]})
        assert window([user("go"), head, result("a")])[1:] == [head, result("a")]
        assert window([user("go"), head, result("zzz"), user("on")]) == [user("go"), user("on")]
    unnamed = [user("go"), model("", None), ChatMessage("seen", role="function"), model("done")]
    assert window(unnamed) == unnamed


def test_of_a_turn_that_is_too_long_the_question_and_the_last_steps_are_left():
    steps = [m for n in range(5) for m in (model("", str(n)), result(str(n), "seen " * 10))]
    said = [user("go"), *steps]
    shown = window([user("a"), model("b"), *said], 70)
    assert [shown[0].content, *(answered_call(m) for m in shown[2::2])] == ["go", "3", "4"]
    cut = window([user("go"), model("", "1"), result("1", "seen " * 100)], 40)
    assert (cut[0].content, cut[2].content[-6:]) == ("go", "seen …")


def test_every_kind_of_block_counts_and_none_for_nothing():
    media = {"image": ImageBlock(url="http://x/y.png"), "audio": AudioBlock(url="http://x/y.mp3")}
    media |= {"video": VideoBlock(url="http://x/y.mp4"), "document": DocumentBlock(url="http://x/y.pdf", title="t")}
    for kind, block in media.items():
        assert COUNT.block(block) == MEDIA[kind] + (kind == "document")
        assert MessageCounter(WordCounter(), {kind: 7}).block(block) == 7 + (kind == "document")
    cited = CitationBlock(
        cited_content=TextBlock(text="one two"), source="s", title="t", additional_location_info={"page": 1}
    )
    assert COUNT.block(cited) == OVERHEAD + 4
    nested = CitableBlock(title="t", source="s", content=[ImageBlock(url="http://x/y.png")])
    assert COUNT.block(nested) == OVERHEAD + 2 + MEDIA["image"]
    assert COUNT.block(ThinkingBlock(content="one two", num_tokens=30)) == 30
    assert COUNT.block(ThinkingBlock(content="one two", additional_information={"signature": "abc"})) == 4
    assert COUNT.block(CachePoint(cache_control=CacheControl(type="ephemeral"))) == 0
    assert COUNT.message(ChatMessage("one", additional_kwargs={"name": "two three"})) == OVERHEAD + 1 + 3

    class New(TextBlock):
        block_type: str = "hologram"

    class Newer(CacheControl):
        type: str = "of a kind that isn't known"

    assert COUNT.block(Newer()) >= 5
    assert COUNT.block(New(text="one two")) == 2


@pytest.mark.parametrize("room", range(OVERHEAD, 40))
def test_what_is_cut_fits_and_begins_as_it_did(room):
    said = ChatMessage(role="user", blocks=[TextBlock(text="a b c d e f"), TextBlock(text="g h i j k l m n o p")])
    found = COUNT.fitted(said, room)
    if found is None:
        assert room < OVERHEAD + 2
        return
    assert COUNT.message(found) <= room
    assert said.content.startswith(found.content.removesuffix(" …"))
    assert COUNT.message(found) >= min(room, OVERHEAD + 16) - 1  # a mark alone isn't worth a token


def test_pictures_that_do_not_fit_are_left_out_and_calls_are_never_cut():
    picture = ChatMessage(role="user", blocks=[ImageBlock(url="http://x/y.png"), TextBlock(text="What is it?")])
    assert [b.block_type for b in window([picture], 50)[0].blocks] == ["text"]
    assert COUNT.fitted(model("word " * 90, "a"), 50) is None


def test_a_text_is_counted_once():
    counted = []

    class Counter(WordCounter):
        def count(self, text):
            counted.append(text)
            return super().count(text)

    counter = MessageCounter(Counter())
    assert [counter.text("one two"), counter.text("one two"), counter.text("")] == [2, 2, 0]
    assert counted == ["one two"]
