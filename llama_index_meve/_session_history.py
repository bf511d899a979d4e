"""One session's messages, word for word: what was said last, all of it, and what a new history changes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from llama_index.core.base.llms.types import ChatMessage

from llama_index_meve._history_window import Window, windowed
from llama_index_meve._message_identity import Handed
from llama_index_meve._messages import as_message, as_value
from llama_index_meve._token_limit import MessageCounter
from llama_index_meve._turns import PINNED, digest, question
from meve.errors import UnknownIdError
from meve.memory import GovernedMemory
from meve.memory.records import UserId

_PAGE = 64
"""Messages that are read first, from the end of a session back; then as many as the limit seems to hold."""
_LEADING = 16
"""Messages at the beginning of a session among which its instructions are looked for."""


class Kept(NamedTuple):
    """A message that is kept."""

    id: str
    name: str
    """What facts are named by that are taken from it."""
    message: ChatMessage


@dataclass(frozen=True, slots=True)
class History:
    """The messages of a session that aren't over. Reading its end costs what the end costs."""

    memory: GovernedMemory
    user_id: UserId
    session_id: str

    def all(self) -> list[ChatMessage]:
        """Every message, as fresh copies."""
        return [as_message(m.value) for m in self.memory.messages.page(self.session_id, user_id=self.user_id)]

    def window(self, counter: MessageCounter, limit: int, reserve: int, handed: Handed) -> Window:
        """What of it stands before the model; see `windowed`. What the user said last is what was handed out before."""
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
        pinned = [message for each in first if (message := as_message(each.value)).role in PINNED]
        window = windowed(handed.among(found), counter, limit, reserve, pinned=pinned)
        return replace(window, question=question(found))

    def add(self, messages: Sequence[ChatMessage]) -> list[Kept]:
        """Keep messages at the end."""
        values = [as_value(m) for m in messages]
        reason = "said in a conversation"
        ids = self.memory.messages.add(self.session_id, values, user_id=self.user_id, reason=reason)
        return [Kept(name, name, message) for name, message in zip(ids, messages, strict=True)]

    def set(self, messages: Sequence[ChatMessage]) -> list[Kept]:
        """Let these be all, at once; those that are new among them, named alike whenever they are set."""
        reason = "another history was given"
        ids, before = self.memory.messages.sync(
            self.session_id, [as_value(m) for m in messages], user_id=self.user_id, reason=reason
        )
        known, seen = Counter(digest(as_message(m.value)) for m in before), Counter[str]()
        made = []
        for message, name in zip(messages, ids, strict=True):
            same = digest(message)
            seen[same] += 1
            if seen[same] > known[same]:
                made.append(Kept(name, f"{same}-{seen[same]}", message))
        return made

    def holds(self, kept: Kept) -> bool:
        """Whether a message is there still."""
        try:
            self.memory.get(kept.id, user_id=self.user_id)
        except UnknownIdError:
            return False
        return True

    def erase(self) -> None:
        """Nothing is left of the session, messages, facts and what was made of them; or all of it, if a hold keeps one.

        Raises:
            HoldError: one is on hold.
        """
        self.memory.forget_session(
            self.session_id, user_id=self.user_id, all_or_none=True, reason="the session was reset"
        )
