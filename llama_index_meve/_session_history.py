"""Read and write one session's messages, word for word."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, Unpack

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llama_index_meve._history_truncation import HistoryWindow, count_steps, truncate_history
from llama_index_meve._message_content import INSTRUCTION_ROLES, last_question, message_digest
from llama_index_meve._message_counter import MessageCounter
from llama_index_meve._message_identity import MessageIdentity
from llama_index_meve._message_json import message_to_json, messages_from_records
from meve.errors import UnknownIdError
from meve.memory import GovernedMemory
from meve.memory.messages.message import Message, PageOptions
from meve.memory.records import UserId

_FIRST_PAGE = 64
"""Messages read first, from the end of a session; later pages are sized by the tokens left."""
_SCAN = 256
"""The most messages read at once to find the beginning of a turn."""
_SPOKEN = frozenset((MessageRole.USER, *INSTRUCTION_ROLES))
_INSTRUCTION_SCAN = 16
"""Messages at the beginning of a session that are searched for instructions."""


class StoredMessage(NamedTuple):
    """A message and its id in the store."""

    id: str
    fact_key: str
    """The id of its turn, from which the ids of its facts are derived."""
    message: ChatMessage


class _Seen(NamedTuple):
    """The places of the user's messages and of instructions, of all messages from `first` to `last`."""

    first: int = 0
    last: int = 0
    places: Sequence[int] = ()


@dataclass(slots=True)
class _Landmarks:
    """What is known of a session. Places never change, so it stays true whatever is added or erased."""

    seen: _Seen = field(default_factory=_Seen)


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """The unexpired messages of a session. Reading the end costs only what is read."""

    memory: GovernedMemory
    user_id: UserId
    session_id: str
    _landmarks: _Landmarks = field(default_factory=_Landmarks)

    def messages(self) -> list[ChatMessage]:
        return messages_from_records(self._page())

    def window(self, counter: MessageCounter, limit: int, reserve: int, identity: MessageIdentity) -> HistoryWindow:
        """Return the end of the session that fits the token limit; see `truncate_history`.

        Reads back until the limit is full, and then the beginning of the turn in which that ends.
        """
        records: list[Message] = []
        messages: list[ChatMessage] = []
        tokens, before, is_complete, size = 0, None, False, _FIRST_PAGE
        while not is_complete and tokens <= limit:
            page = self._page(before=before, limit=size, newest=True)
            records, messages = [*page, *records], [*messages_from_records(page), *messages]
            tokens, is_complete = count_steps(messages, counter), len(page) < size
            before = page[0].place if page else before
            missing = (limit - tokens) * len(messages) // max(1, tokens)
            size = max(_FIRST_PAGE, min(missing, 4 * len(messages)))
        pinned: list[ChatMessage] = []
        if before is not None and not is_complete:
            beginning = self._turn_beginning(before, records)
            first = self._page(before=beginning[0].place if beginning else before, limit=_INSTRUCTION_SCAN)
            pinned = [each for each in messages_from_records(first) if each.role in INSTRUCTION_ROLES]
            messages = [*messages_from_records(beginning), *messages]
        window = truncate_history(identity.restore(messages), counter, limit, reserve, pinned=pinned)
        return replace(window, question=last_question(messages))

    def _turn_beginning(self, before: int, end: Sequence[Message]) -> list[Message]:
        """Return the user's last message before a place, and the instructions between them.

        Reads what lies between only once, since the places of all that the user and the instructions say are kept.

        Args:
            before: the place.
            end: all messages from there on.
        """
        known = self._landmarks.seen
        places = [place for place in known.places if place < before]
        found: list[Message] = []
        for each in chain(
            self._spoken(before, after=known.last),
            chain.from_iterable(self._page(after=place - 1, before=place + 1) for place in reversed(places)),
            self._spoken(min(before, known.first)),
        ):
            found.append(each)
            if each.value["role"] == MessageRole.USER:
                break
        first = found[-1].place if found else 0
        first = first if first > known.last else min(first, known.first)
        new = {each.place for each in (*found, *end) if each.value["role"] in _SPOKEN}
        self._landmarks.seen = _Seen(
            first, max(known.last, end[-1].place), sorted(place for place in new.union(places) if place >= first)
        )
        return found[::-1]

    def _spoken(self, before: int, after: int = 0) -> Iterator[Message]:
        """Yield the user's messages and the instructions between two places, from the newest on."""
        size, is_last = _INSTRUCTION_SCAN, False
        while not is_last:
            page = self._page(before=before, after=after, limit=size, newest=True)
            yield from (each for each in reversed(page) if each.value["role"] in _SPOKEN)
            before = page[0].place if page else before
            size, is_last = min(2 * size, _SCAN), len(page) < size

    def _page(self, **options: Unpack[PageOptions]) -> list[Message]:
        return self.memory.messages.page(self.session_id, user_id=self.user_id, **options)

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
        page = self._page(limit=_FIRST_PAGE, newest=True)
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
