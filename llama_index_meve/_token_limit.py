"""How many tokens messages take, whatever they are made of; and what of a message fits a room."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from llama_index.core.base.llms.types import (
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)

from llama_index_meve._turns import calls
from meve.pipeline.config import check_names
from meve.ports import TokenCounter

MEDIA = {"image": 2_125, "audio": 2_048, "video": 8_192, "document": 4_096}
"""Tokens of what is no text, by the kind of block: models differ, so a large image, one or two minutes of sound, half a
minute of video and a few pages are taken."""
OVERHEAD = 4
"""Tokens that mark a message off and name its role."""
ELLIPSIS = " …"
_KEPT = 65_536
"""Texts whose counts are remembered, by hash: the texts themselves are not kept."""


class MessageCounter:
    """Counts what models are sent. Safe to share between threads.

    Args:
        tokens: counts text.
        media: tokens of blocks that are no text, by kind, where they differ from `MEDIA`.

    Raises:
        ConfigurationError: a kind that there isn't.
    """

    def __init__(self, tokens: TokenCounter, media: Mapping[str, int] | None = None) -> None:
        check_names(media or (), MEDIA, "media_tokens")
        self._tokens = tokens
        self._media = {**MEDIA, **(media or {})}
        self._counts: OrderedDict[tuple[int, int], int] = OrderedDict()
        self._guard = Lock()

    def text(self, text: str) -> int:
        """Tokens of a text; one that was seen before is not counted anew."""
        if not text:
            return 0
        key = (hash(text), len(text))
        found = self._counts.get(key)
        if found is None:
            found = self._tokens.count(text)
            with self._guard:
                self._counts[key] = found
                while len(self._counts) > _KEPT:
                    self._counts.popitem(last=False)
        return found

    def message(self, message: ChatMessage) -> int:
        """Tokens of a message with all its blocks and what else is sent of it."""
        extra = self.text(_plain(message.additional_kwargs)) if message.additional_kwargs else 0
        return OVERHEAD + extra + sum(self.block(block) for block in message.blocks)

    def block(self, block: Any) -> int:
        """Tokens of a block; one of a kind that isn't known counts with all that it holds."""
        kind = getattr(block, "block_type", "")
        if isinstance(block, TextBlock):
            return self.text(block.text)
        if isinstance(block, CachePoint):
            return 0
        if isinstance(block, ToolCallBlock):
            return OVERHEAD + self.text(block.tool_name) + self.text(_plain(block.tool_kwargs))
        if isinstance(block, ThinkingBlock):
            return max(block.num_tokens or 0, self.text(block.content or "")) + self._rest(block.additional_information)
        if isinstance(block, CitableBlock | CitationBlock):
            nested = sum(self.block(each) for each in block.nested_blocks)
            return OVERHEAD + nested + self.text(block.title) + self.text(block.source)
        if kind in self._media:
            return self._media[kind] + self.text(getattr(block, "title", None) or "")
        return max(1, self.text(block.model_dump_json(fallback=str)))

    def fitted(self, message: ChatMessage, room: int) -> ChatMessage | None:
        """A message, or as much of it as fits: blocks in their order, the text that crosses the border cut there.

        Returns:
            None where nothing fits, or where it is one that can't be cut without harm, such as a call of a tool.
        """
        if self.message(message) <= room:
            return message
        left = room - OVERHEAD - (self.text(_plain(message.additional_kwargs)) if message.additional_kwargs else 0)
        if calls(message):
            return None
        kept: list[Any] = []
        for block in message.blocks:
            cost = self.block(block)
            if cost > left and isinstance(block, TextBlock) and (text := self.cut(block.text, left)):
                block, cost = TextBlock(text=text), left
            if cost <= left:
                kept.append(block)
                left -= cost
        return message.model_copy(update={"blocks": kept}) if kept else None

    def cut(self, text: str, room: int) -> str:
        """The beginning of a text that fits, with a mark where it ends; empty if not even that fits."""
        if self._tokens.count(text) <= room:
            return text
        fits, over = 0, len(text)
        while over - fits > 1:
            middle = (fits + over) // 2
            if self._tokens.count(text[:middle].rstrip() + ELLIPSIS) <= room:
                fits = middle
            else:
                over = middle
        return text[:fits].rstrip() + ELLIPSIS if text[:fits].strip() else ""

    def _rest(self, information: Mapping[str, Any]) -> int:
        return self.text(_plain(information)) if information else 0


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
