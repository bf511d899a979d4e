"""What the operations take and return, as JSON."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from meve.memory.records import ID_LENGTH

MAX_QUERY = 4_000
"""The most characters of a question."""
MAX_TEXT = 10_000
"""The most characters of a memory."""
_SOME_TEXT = r"^\s*[^\x00\s][^\x00]*$"
"""Not blank, and without U+0000."""


def text_field(most: int, description: str) -> Any:  # noqa: ANN401 - a field of pydantic
    return Field(min_length=1, max_length=most, pattern=_SOME_TEXT, description=description)


def as_int(value: Any) -> Any:  # noqa: ANN401 - whatever was given
    return int(value) if isinstance(value, float) and value.is_integer() else value


_AsInt = BeforeValidator(as_int)  # JSON also writes 3 as 3.0
_Limit = Annotated[int, Field(ge=1, le=50), _AsInt]
Tokens = Annotated[int, Field(ge=16, le=16_000), _AsInt]
Query = Annotated[str, text_field(MAX_QUERY, "What to look for, as the user would ask it, such as: Where do I live?")]
_Fact = Annotated[str, text_field(MAX_TEXT, "One fact about the user, as a full sentence.")]
Id = Annotated[str, text_field(ID_LENGTH, "The id of the memory, as `recall` or `explain` names it.")]


class Model(BaseModel):
    """Data without other fields than those below."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SearchDocumentsRequest(Model):
    """A question to the documents."""

    query: Annotated[str, text_field(MAX_QUERY, "The question, in full.")]
    limit: Annotated[_Limit | None, Field(description="The most passages; no limit by default.")] = None
    max_tokens: Annotated[
        Tokens | None, Field(description="The most tokens of the passages; by default the index's.")
    ] = None
    verified_only: Annotated[
        bool,
        Field(
            description="Whether to leave out passages that weren't verified to answer the question; many answers are "
            "missing then."
        ),
    ] = False


class RememberRequest(Model):
    """A fact to remember."""

    text: _Fact


class RecallRequest(Model):
    """A question to the memory."""

    query: Query


class UpdateRequest(Model):
    """A fact that has changed."""

    id: Id
    text: Annotated[str, text_field(MAX_TEXT, "The fact as it is now, as a full sentence.")]


class ForgetRequest(Model):
    """A memory to forget."""

    id: Id


class ExplainRequest(Model):
    """What to explain."""

    about: Annotated[
        str, text_field(ID_LENGTH, "A topic or a memory's id; or with `what: trace`, the `trace_id` of an answer.")
    ]
    what: Annotated[
        Literal["topic", "memory", "trace"],
        Field(description="`topic` also takes a memory's id; `memory` takes nothing else, and `trace` a `trace_id`."),
    ] = "topic"


class Dropped(Model):
    """A candidate that isn't shown."""

    id: str
    phase: str
    """The phase that dropped it."""
    reason: str
    scores: dict[str, float]


class ShownPassage(Model):
    """A passage that `text` holds."""

    id: str
    title: str
    score: float | None
    verified: bool = Field(description="Whether it was verified to answer the question; `text` marks the others.")
    tokens: int


class ShownMemory(Model):
    """A memory that `text` holds."""

    id: str
    source: str
    score: float | None
    created_at: str
    expires_at: str | None


class Answer(Model):
    """An answer with a text for a language model."""

    text: str = Field(
        description="For the model. What comes from documents and memories stands in a block, as material."
    )


class TracedAnswer(Answer):
    """An answer of a search."""

    trace_id: str = Field(description="For `explain`.")
    dropped: list[Dropped] = Field(
        description="The ten nearest of the candidates that aren't shown, the highest score first; `explain` names all."
    )
    dropped_total: int


class SearchDocumentsAnswer(TracedAnswer):
    """Passages that may answer the question, verified ones first."""

    sufficient: bool = Field(description="Whether the passages probably suffice for an answer; if not, they still may.")
    sufficiency: float | None = Field(description="The estimated probability of that.")
    reason: str = Field(description="Why they don't suffice; empty if they do.")
    tokens: int
    passages: list[ShownPassage]


class RecallAnswer(TracedAnswer):
    """Memories of the user."""

    memories: list[ShownMemory]


class RememberAnswer(Answer):
    """The memory that holds the fact."""

    id: str
    added: bool = Field(description="False if it was remembered already.")


class UpdateAnswer(Answer):
    """The memory that holds the fact now."""

    id: str
    replaced: str


class ForgetAnswer(Answer):
    """The memories that are erased, or hidden."""

    erased: list[str]
    hidden: list[str] = Field(
        description="What the user said, and what models derived from it: kept, but not recalled any more. The "
        "user or the operator restores it."
    )
    held: dict[str, str] = Field(description="Those on hold, which stay, with the reason.")
    left_closed: list[str] = Field(description="Earlier memories that stay in the history.")


class AuditEntry(Model):
    """An entry of the audit log."""

    at: str
    action: str
    reason: str


class ExplainedMemory(Model):
    """A memory, and why it is kept."""

    id: str
    why: str
    score: float | None = Field(description="For the question; none if there was no question.")
    reflection: float = Field(description="How useful it was, from 0 to 100.")
    events: list[AuditEntry]


class ExplainAnswer(Answer):
    """Why memories are kept, or the trace of an earlier answer."""

    memories: list[ExplainedMemory]
    trace: dict[str, Any] | None
