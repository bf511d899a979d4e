"""Read and write one session's messages, word for word."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from llama_index.core.base.llms.types import ChatMessage

from llama_index_meve._history_truncation import HistoryWindow, truncate_history
from llama_index_meve._message_content import INSTRUCTION_ROLES, last_question, last_user_index, message_digest
from llama_index_meve._message_counter import MessageCounter
from llama_index_meve._message_identity import MessageIdentity
from llama_index_meve._message_json import message_to_json, messages_from_records
from meve.errors import UnknownIdError
from meve.memory import GovernedMemory
from meve.memory.records import UserId

_FIRST_PAGE = 64
"""Messages read first, from the end of a session; later pages are sized by the tokens left."""
_INSTRUCTION_SCAN = 16
"""Messages at the beginning of a session that are searched for instructions."""


class StoredMessage(NamedTuple):
    """A message and its id in the store."""

    id: str
    fact_key: str
    """The id of its turn, from which the ids of its facts are derived."""
    message: ChatMessage


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """The unexpired messages of a session. Reading the end costs only what is read."""

    memory: GovernedMemory
    user_id: UserId
    session_id: str

    def messages(self) -> list[ChatMessage]:
        return messages_from_records(self.memory.messages.page(self.session_id, user_id=self.user_id))

    def window(self, counter: MessageCounter, limit: int, reserve: int, identity: MessageIdentity) -> HistoryWindow:
        """Return the end of the session that fits the token limit; see `truncate_history`.

        Reads back to the user's last message, however many steps an agent took since.
        """
        store = self.memory.messages
        messages: list[ChatMessage] = []
        tokens, before, is_complete, size = 0, None, False, _FIRST_PAGE
        while not is_complete and (tokens <= limit or last_user_index(messages) is None):
            page = store.page(self.session_id, user_id=self.user_id, before=before, limit=size, newest=True)
            read = messages_from_records(page)
            messages, tokens = [*read, *messages], tokens + sum(map(counter.count_message, read))
            before, is_complete = page[0].place if page else None, len(page) < size
            missing = (limit - tokens) * len(messages) // max(1, tokens)
            size = max(_FIRST_PAGE, missing if tokens <= limit else len(messages))
        pinned: list[ChatMessage] = []
        if not is_complete:
            first = store.page(self.session_id, user_id=self.user_id, before=before, limit=_INSTRUCTION_SCAN)
            pinned = [each for each in messages_from_records(first) if each.role in INSTRUCTION_ROLES]
        window = truncate_history(identity.restore(messages), counter, limit, reserve, pinned=pinned)
        return replace(window, question=last_question(messages))

    def add(self, messages: Sequence[ChatMessage]) -> list[StoredMessage]:
        values = [message_to_json(each) for each in messages]
        ids = self.memory.messages.add(self.session_id, values, user_id=self.user_id, reason="said in a conversation")
        return [StoredMessage(id_, id_, message) for id_, message in zip(ids, messages, strict=True)]

    def set(self, messages: Sequence[ChatMessage]) -> list[StoredMessage]:
        """Replace all messages at once and return the new ones, with the same fact keys whenever they are set."""
        ids, before = self.memory.messages.sync(
            self.session_id,
            [message_to_json(each) for each in messages],
            user_id=self.user_id,
            reason="another history was given",
        )
        known, seen = Counter(map(message_digest, messages_from_records(before))), Counter[str]()
        added = []
        for message, id_ in zip(messages, ids, strict=True):
            digest = message_digest(message)
            seen[digest] += 1
            if seen[digest] > known[digest]:
                added.append(StoredMessage(id_, f"{digest}-{seen[digest]}", message))
        return added

    def messages_before(self, stored: StoredMessage) -> list[ChatMessage]:
        """Return the messages before one of the session's newest; none for an older one."""
        page = self.memory.messages.page(self.session_id, user_id=self.user_id, limit=_FIRST_PAGE, newest=True)
        ids = [each.id for each in page]
        return messages_from_records(page[: ids.index(stored.id)]) if stored.id in ids else []

    def contains(self, stored: StoredMessage) -> bool:
        try:
            self.memory.get(stored.id, user_id=self.user_id)
        except UnknownIdError:
            return False
        return True

    def erase(self) -> None:
        """Erase the session: messages, facts and what was derived from them.

        Raises:
            HoldError: a record is on hold; nothing is erased.
        """
        self.memory.forget_session(
            self.session_id, user_id=self.user_id, all_or_none=True, reason="the session was reset"
        )
