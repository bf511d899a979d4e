"""What a memory keeps, for how long, and what may be recalled. Every value can be changed, in Python or in YAML.

Source: MemoryArchitect, sections B to H; where the paper gives no value, the default here is ours.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from meve.errors import PolicyError

PolicyClass: TypeAlias = Literal["canonical", "factual", "intent_bound", "ephemeral", "private"]
Source: TypeAlias = Literal["doc", "chat_user", "chat_assistant", "api_result", "summary", "item", "message"]
"""Where a memory is from; an item is put under a key, by `memory.items`, and a message kept by `memory.messages`."""
CHAT: tuple[Source, ...] = ("chat_user", "chat_assistant", "message")
"""Sources that are turns of a conversation."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*")


def span(value: object) -> object:
    """A length of time as a policy writes it: `90s`, `30m`, `24h`, `7d`, `2w`; what is no text is left to pydantic.

    Raises:
        ValueError: a text that is no length of time.

    >>> span("24h")
    datetime.timedelta(days=1)
    """
    if not isinstance(value, str | bool):
        return value
    found = _SPAN.fullmatch(str(value))
    if not found:
        raise ValueError("give a length of time such as 90s, 30m, 24h, 7d or 2w")
    try:
        return timedelta(**{_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        raise ValueError("at most 999,999,999 days can be counted: leave it out for no end") from None


def _lasting(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("a length of time must be longer than nothing")
    return value


Span = Annotated[timedelta, BeforeValidator(span), AfterValidator(_lasting)]
Score = Annotated[float, Field(ge=0, le=100)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class _Values(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)


class ClassRule(_Values):
    """How memories of one class are treated."""

    ttl: Span | None = None
    """How long one lives unless it says so itself; None for ever."""
    boost: Annotated[float, Field(ge=-1, le=1)] = 0.0
    """Its share of the ranking."""
    prune: bool = True
    """Whether a low score may remove it."""
    share: bool = False
    """Whether it may be put where every user recalls it."""
    on_request: bool = False
    """Whether it is recalled only where the caller asks for such."""


class Likeness(_Values):
    """How like a memory is to a question: half of (its cosine + words · the share of the question's words it holds).

    Words weigh by how rare they are, as in BM25. A turn of a conversation borrows from those beside it. The values are
    those that found most evidence in LoCoMo (see docs/memory.md).
    """

    words: Annotated[float, Field(ge=0, le=10)] = 3.0
    before: Fraction = 0.4
    """The share that a turn borrows from the one before it in its session."""
    after: Fraction = 0.3
    """The share that it borrows from the one after it."""


class Ranking(_Values):
    """score = similarity · likeness + reflection · score / 100 + boost · the class's boost."""

    similarity: Fraction = 0.7
    reflection: Fraction = 0.2
    boost: Fraction = 0.1
    threshold: Fraction = 0.3
    """The score that a memory must reach to be recalled."""
    conflicts: bool = False
    """Whether both sides of a contradiction may be recalled together; if not, the one that yields stays out."""


class Reflection(_Values):
    """How scores move, from 0 to 100. Used: by the first step whose `below` the score lies under."""

    start: Score = 50
    chat_start: Score = 30
    """Of turns of a conversation."""
    steps: tuple[tuple[Score, Score], ...] = ((70, 10), (90, 5), (100, 2))
    """(below, gain)."""
    unused: Score = 5
    """Lost by what was recalled and not used."""
    contradicted: Score = 30
    """Lost by what the answer contradicts."""
    idle: Span = timedelta(days=14)
    """From when on a score decays that nothing recalls."""
    half_life: Span = timedelta(days=90)
    floor: Score = 20
    """Decay alone goes no lower."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        bounds = [below for below, _ in self.steps]
        if bounds != sorted(set(bounds)):
            raise ValueError(f"steps must rise, each with a higher score than the one before: {bounds}")
        return self

    def used(self, score: float) -> float:
        """A score after a use: 50, 60, 70, 75, and so on.

        >>> Reflection().used(70)
        75.0
        """
        gain = next((gain for below, gain in self.steps if score < below), 0.0)
        return float(min(100, score + gain))

    def decayed(self, score: float, idle: timedelta) -> float:
        """A score after so long without a use or a recall; never below `floor` by that.

        >>> round(Reflection().decayed(60, timedelta(days=104)), 1)
        30.0
        """
        past = idle - self.idle
        if past <= timedelta(0) or score <= self.floor:
            return score
        return float(max(self.floor, score * 0.5 ** (past / self.half_life)))


class Pruning(_Values):
    """What a low score removes."""

    below: Score = 20
    min_age: Span = timedelta(days=7)


class Merging(_Values):
    """What counts as the same memory twice."""

    similarity: Fraction = 0.92
    """The cosine from which on two memories are one, if no number, date, name or negation differs."""
    summarise_below: Score = 30
    """Related memories with lower scores become one summary."""
    related: Fraction = 0.6
    """The cosine from which on two memories are related."""
    least: Annotated[int, Field(ge=2)] = 4
    """How many related ones make a summary."""


class Archiving(_Values):
    """What is compressed and taken out of the index; a change or a hold brings it back."""

    below: Score = 30
    idle: Span = timedelta(days=60)


class Limits(_Values):
    """What keeps a memory small and quick."""

    per_user: Count = 10_000
    """Memories of a user that are recalled from; above it, the lowest scores are pruned."""
    text: Count = 100_000
    """Characters of one memory."""
    recalls: Annotated[int, Field(ge=0)] = 1_024
    """Recalls that are kept in memory; 0 for none."""
    vectors: Count = 200_000
    """Memories whose vectors and words are kept in memory, over all users."""
    busy: Count = 32
    """Recalls at once from which on fewer candidates are ranked."""
    busy_candidates: Count = 8


class Tagging(_Values):
    """What memories may be about. Tags that a caller gives are taken as they are."""

    tags: dict[str, str] = Field(default_factory=dict)
    """Each with words or phrases for it, commas between them: a memory that holds one of them is about it."""
    likeness: Fraction = 0.25
    """The cosine with all of them together from which on a memory is about it, too. Of a few dozen statements over
    eight topics the embedder that ships gives 68 % their tag and 2 % another by it."""

    @field_validator("tags")
    @classmethod
    def _lower(cls, tags: dict[str, str]) -> dict[str, str]:
        blank = [tag for tag in tags if not tag.strip()]
        if blank:
            raise ValueError("a tag must have a name")
        return {tag.strip().casefold(): about for tag, about in tags.items()}


def _classes() -> dict[PolicyClass, ClassRule]:
    return {
        "canonical": ClassRule(boost=1.0, prune=False, share=True),
        "factual": ClassRule(ttl=timedelta(days=30), boost=0.5),
        "intent_bound": ClassRule(ttl=timedelta(hours=24), boost=0.2),
        "ephemeral": ClassRule(ttl=timedelta(hours=6), boost=-0.5),
        "private": ClassRule(ttl=timedelta(days=7), on_request=True),
    }


class Policy(_Values):
    """Everything that a memory decides by. `Policy()` is the default.

    >>> Policy().rule("ephemeral").ttl
    datetime.timedelta(seconds=21600)
    """

    classes: dict[PolicyClass, ClassRule] = Field(default_factory=_classes)
    chat_ttl: Span | None = timedelta(days=7)
    """How long turns of a conversation live, whatever their class; None to go by the class."""
    likeness: Likeness = Likeness()
    ranking: Ranking = Ranking()
    reflection: Reflection = Reflection()
    pruning: Pruning = Pruning()
    merging: Merging = Merging()
    archiving: Archiving = Archiving()
    tagging: Tagging = Tagging()
    limits: Limits = Limits()

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, data: Any) -> Any:  # noqa: ANN401
        """Classes that aren't named keep their defaults, and so do the values of one that aren't."""
        given = data.get("classes") if isinstance(data, Mapping) else None
        if not isinstance(given, Mapping):
            return data
        known = _classes()
        merged: dict[Any, Any] = {name: rule for name, rule in known.items() if name not in given}
        for name, values in given.items():
            base = known[name].model_dump() if name in known else {}
            merged[name] = {**base, **values} if isinstance(values, Mapping) else values
        return {**data, "classes": merged}

    def rule(self, name: PolicyClass) -> ClassRule:
        """How memories of a class are treated."""
        return self.classes[name]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Of plain values; what isn't named keeps its default.

        Raises:
            PolicyError: an unknown key, or a value that can't be; the message names the key.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as cause:
            raise PolicyError(f"the policy can't be used: {_told(cause)}") from cause

    @classmethod
    def from_yaml(cls, file: str | Path) -> Self:
        """Of a YAML file; what isn't named keeps its default.

        Raises:
            PolicyError: no such file, no YAML, an unknown key, or a value that can't be; the message names the key.
        """
        import yaml

        try:
            data = yaml.safe_load(Path(file).read_text("utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as cause:
            raise PolicyError(f"the policy {file} can't be read: {cause}") from cause
        if data is not None and not isinstance(data, dict):
            raise PolicyError(f"the policy {file} holds a {type(data).__name__}: give keys and values")
        try:
            return cls.model_validate(data or {})
        except ValidationError as cause:
            raise PolicyError(f"the policy {file} can't be used: {_told(cause)}") from cause

    def to_yaml(self) -> str:
        """All values, as `from_yaml` reads them."""
        import yaml

        return str(yaml.safe_dump(_written(self.model_dump()), sort_keys=False))


def _told(error: ValidationError) -> str:
    """Each key with what is wrong about it; for an unknown one, which there are."""
    parts = []
    for each in error.errors(include_url=False):
        key = ".".join(map(str, each["loc"])).removesuffix(".[key]")
        if each["type"] == "extra_forbidden":
            parts.append(f"{key} is unknown; known there: {', '.join(_keys(each['loc'][:-1]))}")
        else:
            shown = f" (it is {each['input']!r:.60})" if not isinstance(each["input"], Mapping) else ""
            parts.append(f"{key}: {each['msg']}{shown}")
    return "; ".join(parts)


def _keys(place: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Policy
    for name in place:
        field = model.model_fields.get(str(name))
        kind = ClassRule if field is None or str(name) == "classes" else field.annotation
        model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else ClassRule
    return sorted(model.model_fields)


def _written(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
            if seconds % size == 0:
                return f"{seconds / size:g}{unit}"
        return f"{seconds:g}s"
    if isinstance(value, dict):
        return {key: _written(each) for key, each in value.items()}
    return [_written(each) for each in value] if isinstance(value, list | tuple) else value
