"""One session's messages, word for word: what was said last, all of it, and what a new history changes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from llama_index.core.base.llms.types import ChatMessage

from llama_index_meve.counting import MessageCounter
from llama_index_meve.messages import as_message, as_value
from llama_index_meve.turns import PINNED, digest
from llama_index_meve.windows import Window, windowed
from meve.memory import GovernedMemory
from meve.memory.records import UserId

_PAGE = 64
"""Messages that are read first, from the end of a session back; then as many as the limit seems to hold."""
_LEADING = 16
"""Messages at the beginning of a session among which its instructions are looked for."""


@dataclass(frozen=True, slots=True)
class History:
    """The messages of a session that aren't over. Reading its end costs what the end costs."""

    memory: GovernedMemory
    user_id: UserId
    session_id: str

    def all(self) -> list[ChatMessage]:
        """Every message, as fresh copies."""
        return [as_message(m.value) for m in self.memory.messages.page(self.session_id, user_id=self.user_id)]

    def window(self, counter: MessageCounter, limit: int, reserve: int) -> Window:
        """What of it stands before the model; see `windowed`."""
        kept = self.memory.messages
        found: list[ChatMessage] = []
        tokens, before, whole, size = 0, None, False, _PAGE
        while not whole and tokens <= limit:
            page = kept.page(self.session_id, user_id=self.user_id, before=before, limit=size, newest=True)
            read = [as_message(each.value) for each in page]
            found, tokens = [*read, *found], tokens + sum(map(counter.message, read))
            before, whole = page[0].place if page else None, len(page) < size
            size = max(_PAGE, (limit - tokens) * len(found) // max(1, tokens))
        first = [] if whole else kept.page(self.session_id, user_id=self.user_id, before=before, limit=_LEADING)
        leading = takewhile(lambda m: m.role in PINNED, (as_message(each.value) for each in first))
        return windowed(found, counter, limit, reserve, pinned=list(leading))

    def add(self, messages: Sequence[ChatMessage]) -> list[str]:
        """Keep messages at the end; their ids."""
        values = [as_value(m) for m in messages]
        return self.memory.messages.add(self.session_id, values, user_id=self.user_id, reason="said in a conversation")

    def set(self, messages: Sequence[ChatMessage]) -> list[tuple[str, ChatMessage]]:
        """Let these be all; those that are new among them, each with an id that is the same whenever it is set."""
        before = self.all()
        if before == messages[: len(before)]:
            self.add(messages[len(before) :])
        else:
            values = [as_value(m) for m in messages]
            reason = "another history was given"
            self.memory.messages.replace(self.session_id, values, user_id=self.user_id, reason=reason)
        known, seen = Counter(map(digest, before)), Counter[str]()
        made = []
        for message in messages:
            same = digest(message)
            seen[same] += 1
            if seen[same] > known[same]:
                made.append((f"{same}-{seen[same]}", message))
        return made

    def erase(self) -> None:
        """Nothing is left of the session: messages, and the facts that were taken from them."""
        reason = "the session was reset"
        self.memory.messages.take(self.session_id, user_id=self.user_id, archived=None, reason=reason)
        for record in self.memory.list(user_id=self.user_id, include_archived=True):
            if record.session_id == self.session_id and not record.hold:
                self.memory.delete(record.id, user_id=self.user_id, reason=reason)
