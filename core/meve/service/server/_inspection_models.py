"""What the operations of the inspector take and return, as JSON."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from meve.memory.records import ID_LENGTH, NAME_LENGTH
from meve.service.server._models import Id, Model, Query, Tokens, as_int, text_field

MAX_SHOWN = 200
"""The most memories or entries in an answer."""


def _as_float(value: Any) -> Any:  # noqa: ANN401 - whatever was given
    return float(value) if type(value) is int and abs(value) <= 1 else value


_Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_as_float)]  # JSON also writes 1.0 as 1
_Count = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(as_int)]
_Shown = Annotated[int, Field(ge=1, le=MAX_SHOWN), BeforeValidator(as_int)]
_Days = Annotated[int, Field(ge=1, le=36_500), BeforeValidator(as_int)]

Which = Literal["current", "replaced", "archived", "on_hold", "ending"]
"""Which memories a list holds."""


class NothingRequest(Model):
    """No arguments."""


class ShowSessionAnswer(Model):
    """Who asks, what he may do, and the settings of the index."""

    user: str = Field(description="Empty without a memory.")
    may_inspect: bool = Field(description="Whether the memory may be inspected.")
    may_write: bool
    has_documents: bool
    has_memory: bool
    settings: dict[str, Any] = Field(description="The index's own; empty without documents.")


class TryDocumentsRequest(Model):
    """A question to the documents, with other settings than the index's own."""

    query: Annotated[str, text_field(4_000, "The question, in full.")]
    threshold: _Share | None = None
    redundancy: _Share | None = None
    duplicates: Literal["repeated", "similar"] | None = None
    max_tokens: Tokens | None = None
    when_insufficient: Literal["return", "verified_only"] | None = None


class CandidateText(Model):
    """The text of a candidate."""

    title: str
    text: str


class TryAnswer(Model):
    """What became of each candidate."""

    text: str = Field(description="What a model gets.")
    sufficient: bool
    tokens: int
    max_tokens: int
    trace: dict[str, Any]
    texts: dict[str, CandidateText] = Field(description="The candidates' texts by id, shortened to 2,000 characters.")


class TryDocumentsAnswer(TryAnswer):
    """What became of each passage."""


class Memory(Model):
    """A memory."""

    id: str
    text: str = Field(
        description="Of a message its values by name. Where several are listed, its first 2,000 characters."
    )
    kind: str
    source: str
    policy_class: str
    shared: bool
    tags: list[str]
    session_id: str | None
    created_at: str
    valid_from: str | None
    valid_to: str | None
    expires_at: str | None
    touched_at: str | None = Field(description="When it was last recalled.")
    uses: int
    reflection: float = Field(description="How useful it was, from 0 to 100, as of now.")
    superseded_by: str | None
    replacement: str = Field(description="The text of the memory that replaced it; empty if none did, or it is gone.")
    restored_at: str | None
    derived_from: list[str]
    flagged: str
    hold: str
    pinned: bool
    archived: bool


class Entry(Model):
    """An entry of the audit log."""

    at: str
    action: str
    reason: str
    id: str
    before: float | None = Field(description="The reflection score before, if the entry is of a reflection.")
    after: float | None


class FoundMemory(Model):
    """A memory on a topic, and why it is kept."""

    memory: Memory
    score: float
    why: str


class FindMemoriesRequest(Model):
    """A topic."""

    query: Query


class FindMemoriesAnswer(TryAnswer):
    """What a recall would hand out now, and everything on the topic, whether it would be handed out or not."""

    about: list[FoundMemory]


class ListMemoriesRequest(Model):
    """Which memories to list."""

    which: Which = "current"
    days: Annotated[_Days, Field(description="Of `ending`: within how many days.")] = 30
    contains: Annotated[str, Field(max_length=200, description="A part of the text, in any case.")] = ""
    messages: Annotated[bool, Field(description="Whether to list messages of conversations, too.")] = False
    skip: _Count = 0
    limit: _Shown = 50


class ListMemoriesAnswer(Model):
    """Memories, the newest first; those of `ending` by their end."""

    memories: list[Memory]
    total: int
    counts: dict[str, int] = Field(description="How many memories each list holds.")


class MemoryRequest(Model):
    """A memory."""

    id: Id


class Moment(Model):
    """A score at a moment."""

    at: str
    score: float


class ShowMemoryAnswer(Model):
    """A memory with its history."""

    memory: Memory
    now: str
    why: str
    events: list[Entry]
    curve: list[Moment] = Field(description="Its reflection score from the last change on, if nobody recalls it.")
    earlier: list[Memory] = Field(description="What it replaced, in one or several steps, the newest first.")
    later: list[Memory] = Field(description="What replaced it, in one or several steps.")


class HoldMemoryRequest(MemoryRequest):
    """A memory to hold."""

    why: Annotated[str, text_field(NAME_LENGTH, "Why; it stands in the log.")]


class EraseMemoryRequest(MemoryRequest):
    """A memory to erase."""

    earlier: Annotated[bool, Field(description="Whether to erase what it replaced, too.")] = False
    dry_run: Annotated[bool, Field(description="Only tell what would be erased.")] = True


class EraseAllRequest(Model):
    """All memories of the user."""

    dry_run: Annotated[bool, Field(description="Only tell what would be erased.")] = True


class ErasureAnswer(Model):
    """What was erased, or would be."""

    dry_run: bool
    erased: list[str]
    held: dict[str, str]
    left_closed: list[str]


class MemoryAnswer(Model):
    """The memory as it is now."""

    memory: Memory | None = Field(description="None if it expired on hold: nothing shows it, and a release ends it.")


class ExportMemoriesAnswer(Model):
    """All data of the user."""

    data: dict[str, Any]


class ListAuditRequest(Model):
    """Which entries of the audit log to list."""

    id: Annotated[str, Field(max_length=ID_LENGTH, description="Of this memory; empty for all.")] = ""
    erasures: Annotated[bool, Field(description="Only erasures: what was deleted, pruned, or had expired.")] = False
    days: Annotated[_Days, Field(description="Of the last days.")] = 30
    skip: _Count = 0
    limit: _Shown = 100


class ListAuditAnswer(Model):
    """The user's own entries, the newest first."""

    entries: list[Entry]
    total: int


class VerifyAuditAnswer(Model):
    """Whether the log is intact. It holds nothing of other users."""

    intact: bool = Field(description="Whether every entry of the log is in its place and unchanged.")
    keyed: bool = Field(description="Whether the log is signed; without a key, the check shows accidents only.")
    compared: bool = Field(description="Whether the user's memories were compared with the log; needs a key.")
    differs: dict[str, list[str]] = Field(description="By id of a memory of the user: what isn't as the log says.")
