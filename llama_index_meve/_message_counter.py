"""Count the tokens of chat messages with any blocks, and cut a message to a number of tokens."""

import json
from bisect import bisect_right
from collections.abc import Mapping
from operator import attrgetter
from threading import Lock
from typing import Any

from cachetools import FIFOCache, cachedmethod
from llama_index.core.base.llms.types import (
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)

from llama_index_meve._default_tokenizer import global_token_counter
from llama_index_meve._message_content import tool_call_ids
from meve.components.tokenizers import resolve_tokens
from meve.pipeline.config import check_option_names
from meve.ports import TokenCounter

MEDIA_TOKENS = {"image": 2_125, "audio": 2_048, "video": 8_192, "document": 4_096}
"""Tokens of a media block by kind. Models differ: these suit a large image, one or two minutes of sound, half a minute
of video, and a few pages."""
MESSAGE_OVERHEAD = 4
"""Tokens that delimit a message and name its role."""
ELLIPSIS = " …"


class MessageCounter:
    """Counts the tokens of what models are sent. Thread-safe.

    `media` holds the tokens of media blocks by kind, where they differ from `MEDIA_TOKENS`.
    """

    def __init__(self, tokens: TokenCounter | str | None, media: Mapping[str, int] | None = None) -> None:
        check_option_names(media or (), MEDIA_TOKENS, "media_tokens")
        self._tokens = global_token_counter() if tokens is None else resolve_tokens(tokens)
        self._media = {**MEDIA_TOKENS, **(media or {})}
        self._counts: FIFOCache[tuple[int, int], int] = FIFOCache(maxsize=65_536)
        self._lock = Lock()

    @cachedmethod(attrgetter("_counts"), key=lambda _, text: (hash(text), len(text)), lock=attrgetter("_lock"))
    def count_text(self, text: str) -> int:
        return self._tokens.count(text) if text else 0

    def count_message(self, message: ChatMessage) -> int:
        """Count the tokens of a message: its blocks, additional kwargs and overhead."""
        extra = self.count_text(_as_text(message.additional_kwargs)) if message.additional_kwargs else 0
        return MESSAGE_OVERHEAD + extra + sum(self.count_block(block) for block in message.blocks)

    def count_block(self, block: Any) -> int:
        """Count the tokens of a block; of an unknown kind, those of its JSON."""
        kind = getattr(block, "block_type", "")
        if isinstance(block, TextBlock):
            return self.count_text(block.text)
        if isinstance(block, CachePoint):
            return 0
        if isinstance(block, ToolCallBlock):
            return MESSAGE_OVERHEAD + self.count_text(block.tool_name) + self.count_text(_as_text(block.tool_kwargs))
        if isinstance(block, ThinkingBlock):
            extra = self.count_text(_as_text(block.additional_information)) if block.additional_information else 0
            return max(block.num_tokens or 0, self.count_text(block.content or "")) + extra
        if isinstance(block, CitableBlock | CitationBlock):
            nested = sum(self.count_block(each) for each in block.nested_blocks)
            return MESSAGE_OVERHEAD + nested + self.count_text(block.title) + self.count_text(block.source)
        if kind in self._media:
            return self._media[kind] + self.count_text(getattr(block, "title", None) or "")
        return max(1, self.count_text(block.model_dump_json(fallback=str)))

    def truncate_message(self, message: ChatMessage, limit: int) -> ChatMessage | None:
        """Return the leading blocks of a message that fit, with the text block at the limit cut.

        Returns:
            None if nothing fits, or the message can't be cut because it calls tools.
        """
        if self.count_message(message) <= limit:
            return message
        left = limit - self.count_message(message.model_copy(update={"blocks": []}))
        if tool_call_ids(message):
            return None
        kept: list[Any] = []
        for block in message.blocks:
            cost = self.count_block(block)
            if cost > left and isinstance(block, TextBlock) and (text := self.truncate_text(block.text, left)):
                block, cost = TextBlock(text=text), left
            if cost <= left:
                kept.append(block)
                left -= cost
        return message.model_copy(update={"blocks": kept}) if kept else None

    def truncate_text(self, text: str, limit: int) -> str:
        """Return the longest beginning of a text that fits with an ellipsis; empty if none does."""
        if self._tokens.count(text) <= limit:
            return text
        lengths = range(1, len(text))
        longest = bisect_right(lengths, limit, key=lambda n: self._tokens.count(text[:n].rstrip() + ELLIPSIS))
        return text[:longest].rstrip() + ELLIPSIS if text[:longest].strip() else ""


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
