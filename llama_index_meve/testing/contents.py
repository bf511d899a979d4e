"""Rules of what a chat store keeps of a message."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.schema import ImageDocument
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore

from llama_index_meve.testing.talk import said

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BYTES = bytes(range(256))
TEXT = TextBlock(text="Good morning!")
BLOCKS: dict[str, Any] = {
    "text": TEXT,
    "image": ImageBlock(image=PIXEL, detail="low"),
    "image elsewhere": ImageBlock(url="https://example.com/a.png"),
    "audio": AudioBlock(audio=BYTES, format="wav"),
    "video": VideoBlock(video=BYTES, video_mimetype="video/mp4", fps=2),
    "document": DocumentBlock(data=BYTES, title="Notes", document_mimetype="application/pdf"),
    "cache point": CachePoint(cache_control=CacheControl(type="ephemeral", ttl="1h")),
    "citable": CitableBlock(title="Notes", source="here", content=[TEXT]),
    "citation": CitationBlock(cited_content=TEXT, source="here", title="Notes", additional_location_info={"page": 3}),
    "thinking": ThinkingBlock(content="Hm.", num_tokens=3, additional_information={"signature": "x"}),
    "tool call": ToolCallBlock(tool_call_id="c1", tool_name="add", tool_kwargs={"a": 1, "b": [2.5, None]}),
    "tool call in text": ToolCallBlock(tool_name="add", tool_kwargs='{"a": 1}'),
}
TEXTS = {"plain": "Good morning!", "empty": "", "blank": " \n", "NUL": "a\x00b", "many scripts": "早上好 🌞 é e\u0301"}
KWARGS: dict[str, dict[str, Any]] = {
    "a tool's result": {"name": "add", "tool_call_id": "c1"},
    "deep": {"usage": {"tokens": [1, 2.5, None, True]}, "": {"é": "早"}},
    "large": {"text": "x" * 200_000},
}


class ContentRules:
    """A message comes back as it went in."""

    @pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
    def test_every_block_comes_back(self, store: AsyncDBChatStore, run: Callable[..., Any], block: Any) -> None:
        """Every kind of block comes back as it went in, beside others."""
        message = ChatMessage(role=MessageRole.ASSISTANT, blocks=[TEXT, block.model_copy(deep=True), TEXT])
        assert run(_kept(store, message)) == message

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_every_text_comes_back(self, store: AsyncDBChatStore, run: Callable[..., Any], text: str) -> None:
        """Every text comes back as it went in."""
        assert run(_kept(store, ChatMessage(text))).content == text

    @pytest.mark.parametrize("kwargs", KWARGS.values(), ids=KWARGS)
    def test_every_kwarg_comes_back(
        self, store: AsyncDBChatStore, run: Callable[..., Any], kwargs: dict[str, Any]
    ) -> None:
        """Additional kwargs come back as they went in."""
        message = ChatMessage("5", role=MessageRole.TOOL, additional_kwargs=kwargs)
        assert run(_kept(store, message)) == message

    @pytest.mark.parametrize("role", MessageRole)
    def test_every_role_comes_back(self, store: AsyncDBChatStore, run: Callable[..., Any], role: MessageRole) -> None:
        """Every role comes back as it went in."""
        assert run(_kept(store, ChatMessage("Good morning!", role=role))).role is role

    def test_a_message_without_blocks_comes_back(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """A message without blocks comes back without blocks."""
        assert run(_kept(store, ChatMessage(role=MessageRole.ASSISTANT))).blocks == []

    def test_images_of_old_come_back_once(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """A message with images among its kwargs comes back with as many blocks as it had."""
        image = ImageDocument(image=base64.b64encode(PIXEL).decode())
        message = ChatMessage("Look!", additional_kwargs={"images": [image]})
        assert run(_kept(store, message)).blocks == message.blocks

    def test_a_file_may_be_gone_by_now(self, store: AsyncDBChatStore, run: Callable[..., Any], tmp_path: Path) -> None:
        """A message that names a file comes back when the file is gone, and so do those beside it."""
        file = tmp_path / "a.png"
        file.write_bytes(PIXEL)
        run(store.add_messages("s", [ChatMessage(blocks=[TEXT, ImageBlock(path=file)]), ChatMessage("b")]))
        file.unlink()
        found = run(store.get_messages("s"))
        assert [len(message.blocks) for message in found] == [2, 1]
        assert found[0].blocks[1].path == file

    def test_what_is_returned_is_a_copy(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """What becomes of a message that was returned changes nothing that is stored."""
        run(store.add_message("s", ChatMessage("a", additional_kwargs={"n": {"x": 1}})))
        (message,) = run(store.get_messages("s"))
        message.blocks.append(TEXT)
        message.blocks[0].text = "b"
        message.additional_kwargs["n"]["x"] = 2
        (again,) = run(store.get_messages("s"))
        assert (again.content, again.additional_kwargs) == ("a", {"n": {"x": 1}})

    def test_what_was_added_is_a_copy(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """What becomes of a message that was added changes nothing that is stored."""
        message = ChatMessage("a", additional_kwargs={"n": {"x": 1}})
        run(store.add_message("s", message))
        message.blocks = [TEXT]
        message.additional_kwargs["n"]["x"] = 2
        (again,) = run(store.get_messages("s"))
        assert (again.content, again.additional_kwargs) == ("a", {"n": {"x": 1}})

    def test_what_cannot_be_kept_is_refused(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """What would come back as something else is refused, and nothing of its batch is added."""
        bad = ChatMessage("b", additional_kwargs={"score": float("nan")})
        with pytest.raises(Exception, match=r"(?s).+"):
            run(store.add_messages("s", [ChatMessage("a"), bad]))
        assert run(said(store, "s")) == []


async def _kept(store: AsyncDBChatStore, message: ChatMessage) -> ChatMessage:
    await store.add_message("s", message)
    (found,) = await store.get_messages("s")
    return found
