"""A chat store returns every message as it was stored."""

import base64

import pytest
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.schema import ImageDocument

from tests.llama_index_integration.chat_helpers import stored_texts

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BYTES = bytes(range(256))
TEXT = TextBlock(text="Good morning!")
BLOCKS = {
    "text": TEXT,
    "image": types.ImageBlock(image=PIXEL, detail="low"),
    "image elsewhere": types.ImageBlock(url="https://example.com/a.png"),
    "audio": types.AudioBlock(audio=BYTES, format="wav"),
    "video": types.VideoBlock(video=BYTES, video_mimetype="video/mp4", fps=2),
    "document": types.DocumentBlock(data=BYTES, title="Notes", document_mimetype="application/pdf"),
    "cache point": types.CachePoint(cache_control=types.CacheControl(type="ephemeral", ttl="1h")),
    "citable": types.CitableBlock(title="Notes", source="here", content=[TEXT]),
    "citation": types.CitationBlock(
        cited_content=TEXT, source="here", title="Notes", additional_location_info={"page": 3}
    ),
    "thinking": types.ThinkingBlock(content="Hm.", num_tokens=3, additional_information={"signature": "x"}),
    "tool call": types.ToolCallBlock(tool_call_id="c1", tool_name="add", tool_kwargs={"a": 1, "b": [2.5, None]}),
    "tool call in text": types.ToolCallBlock(tool_name="add", tool_kwargs='{"a": 1}'),
}
TEXTS = {"plain": "Good morning!", "empty": "", "blank": " \n", "NUL": "a\x00b", "many scripts": "早上好 🌞 é e\u0301"}
KWARGS = {
    "a tool's result": {"name": "add", "tool_call_id": "c1"},
    "deep": {"usage": {"tokens": [1, 2.5, None, True]}, "": {"é": "早"}},
    "large": {"text": "x" * 200_000},
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
async def test_every_block_round_trips(store, block):
    message = ChatMessage(role=MessageRole.ASSISTANT, blocks=[TEXT, block.model_copy(deep=True), TEXT])
    assert await _round_trip(store, message) == message


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_every_text_round_trips(store, text):
    assert (await _round_trip(store, ChatMessage(text))).content == text


@pytest.mark.parametrize("kwargs", KWARGS.values(), ids=KWARGS)
async def test_additional_kwargs_round_trip(store, kwargs):
    message = ChatMessage("5", role=MessageRole.TOOL, additional_kwargs=kwargs)
    assert await _round_trip(store, message) == message


@pytest.mark.parametrize("role", MessageRole)
async def test_every_role_round_trips(store, role):
    assert (await _round_trip(store, ChatMessage("Good morning!", role=role))).role is role


async def test_message_without_blocks_round_trips(store):
    assert (await _round_trip(store, ChatMessage(role=MessageRole.ASSISTANT))).blocks == []


async def test_legacy_images_in_kwargs_are_not_duplicated(store):
    image = ImageDocument(image=base64.b64encode(PIXEL).decode())
    message = ChatMessage("Look!", additional_kwargs={"images": [image]})
    assert (await _round_trip(store, message)).blocks == message.blocks


async def test_message_naming_a_deleted_file_is_still_readable(store, tmp_path):
    file = tmp_path / "a.png"
    file.write_bytes(PIXEL)
    await store.add_messages("s", [ChatMessage(blocks=[TEXT, types.ImageBlock(path=file)]), ChatMessage("b")])
    file.unlink()
    stored = await store.get_messages("s")
    assert [len(message.blocks) for message in stored] == [2, 1]
    assert stored[0].blocks[1].path == file


async def test_changing_a_returned_message_does_not_change_the_store(store):
    await store.add_message("s", ChatMessage("a", additional_kwargs={"n": {"x": 1}}))
    (message,) = await store.get_messages("s")
    message.blocks.append(TEXT)
    message.blocks[0].text = "b"
    message.additional_kwargs["n"]["x"] = 2
    (again,) = await store.get_messages("s")
    assert (again.content, again.additional_kwargs) == ("a", {"n": {"x": 1}})


async def test_changing_an_added_message_does_not_change_the_store(store):
    message = ChatMessage("a", additional_kwargs={"n": {"x": 1}})
    await store.add_message("s", message)
    message.blocks = [TEXT]
    message.additional_kwargs["n"]["x"] = 2
    (again,) = await store.get_messages("s")
    assert (again.content, again.additional_kwargs) == ("a", {"n": {"x": 1}})


async def test_unstorable_message_is_rejected_with_its_batch(store):
    bad = ChatMessage("b", additional_kwargs={"score": float("nan")})
    with pytest.raises(Exception, match=r"(?s).+"):
        await store.add_messages("s", [ChatMessage("a"), bad])
    assert await stored_texts(store, "s") == []


async def _round_trip(store, message):
    await store.add_message("s", message)
    (stored,) = await store.get_messages("s")
    return stored
