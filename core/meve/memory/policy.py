"""The policy of a memory: what it keeps, for how long, and what may be recalled. Set in Python or YAML.

Source: MemoryArchitect, sections B to H; defaults without a value in the paper are ours.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
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

PolicyClass: TypeAlias = Literal["canonical", "factual", "intent_bound", "ephemeral", "private", "instruction"]
"""What governs a memory. An `instruction` is a standing wish of the user, such as `Always answer in German.`"""
RecordSource: TypeAlias = Literal["doc", "chat_user", "chat_assistant", "api_result", "summary", "item", "message"]
"""Origin of a memory; `item` and `message` are set by `memory.items` and `memory.messages`."""
CHAT_SOURCES: tuple[RecordSource, ...] = ("chat_user", "chat_assistant", "message")
"""Sources whose memories are turns of a conversation."""

_MICROS = {"w": 604_800_000_000, "d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}
"""Microseconds by unit of a duration."""
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*")


def parse_duration(value: object) -> object:
    """Parse a duration such as `90s`, `30m`, `24h`, `7d` or `2w`; values that aren't text are returned unchanged.

    Raises:
        ValueError: a text that is no duration.

    >>> parse_duration("24h")
    datetime.timedelta(days=1)
    """
    if not isinstance(value, str | bool):
        return value
    match = _DURATION.fullmatch(str(value))
    if not match:
        raise ValueError("must be a duration such as 90s, 30m, 24h, 7d or 2w")
    try:
        return timedelta(microseconds=int(Decimal(match[1]) * _MICROS[match[2]]))
    except OverflowError:
        raise ValueError("must be at most 999,999,999 days: leave it out for no limit") from None


def _check_positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("must be a duration greater than 0")
    return value


Duration = Annotated[timedelta, BeforeValidator(parse_duration), AfterValidator(_check_positive)]
Score = Annotated[float, Field(ge=0, le=100)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class _PolicySection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)


class ClassRule(_PolicySection):
    """Rules for memories of one class."""

    ttl: Duration | None = None
    """Lifetime of memories that are added without `ttl` and `expires_at`; None for no expiry."""
    boost: Annotated[float, Field(ge=-1, le=1)] = 0.0
    """Bonus in the ranking, from -1 to 1."""
    prune: bool = True
    """Whether memories with low scores may be removed."""
    share: bool = False
    """Whether memories may be added to the space that all users share."""
    on_request: bool = False
    """Whether memories are recalled only with `include_private`."""


class Relevance(_PolicySection):
    """Relevance of a memory to a question: (cosine + words · word share ^ 1.5) / 2; above 0.8 it approaches 1.

    The cosine of a long memory is that of its best passage. The word share is the share of the question's words that
    the memory contains; rare words weigh more, as in BM25, common words of English less, and a question is taken to
    have at least three. A turn of a conversation adds shares of the word term of its neighbours. Items take
    `item_words`.
    """

    words: Annotated[float, Field(ge=0, le=20)] = 6.0
    item_words: Annotated[float, Field(ge=0, le=20)] = 1.0
    before: Fraction = 0.4
    """Share of the word term of the turn before it in the session."""
    after: Fraction = 0.3
    """Share of the word term of the turn after it."""
    said_then: Fraction = 0.2
    """Added to the relevance of a memory that was added at the time that the question names, such as `last week`."""
    teller: Fraction = 0.15
    """Subtracted from the relevance of the assistant's turns for questions that say `I` or `my`, and added for those
    about what `you said`."""


class Ranking(_PolicySection):
    """Weights of the score: similarity · relevance + reflection · reflection score / 100 + boost · class boost.

    `outcome` adds its share of 2 · expected outcome - 1, from -1 to 1: 0 if none was recorded.
    """

    similarity: Fraction = 0.7
    reflection: Fraction = 0.2
    boost: Fraction = 0.1
    outcome: Fraction = 0.0
    """Weight of recorded outcomes (`record_outcome`, `reflect`); 0 ignores them."""
    threshold: Fraction = 0.0
    """Minimum score of a recalled memory; with 0, only the limit and the budget of a search cut."""
    conflicts: bool = False
    """Whether memories that contradict each other may be recalled together; if not, only the prevailing one is."""


class Reflection(_PolicySection):
    """Changes of reflection scores, from 0 to 100. A use raises a score by the first step whose `below` is higher."""

    start: Score = 50
    chat_start: Score = 30
    """Initial score of turns of a conversation."""
    steps: tuple[tuple[Score, Score], ...] = ((70, 10), (90, 5), (100, 2))
    """Pairs of `below` and gain, with rising `below`."""
    unused: Score = 0
    """Loss of a memory that was recalled and that the answer doesn't show. It may have been obeyed all the same."""
    contradicted: Score = 30
    """Loss of a memory that the answer contradicts."""
    contradicted_yields: bool = False
    """Whether a memory that an answer contradicted is hidden by an older one that says otherwise, and closes none."""
    idle: Duration = timedelta(days=14)
    """Time without a recall after which the score decays."""
    half_life: Duration = timedelta(days=90)
    floor: Score = 20
    """Decay doesn't lower scores below this value."""

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        limits = [below for below, _ in self.steps]
        if limits != sorted(set(limits)):
            raise ValueError(f"steps must rise: each `below` must be higher than the one before, got {limits}")
        return self

    def raise_score(self, score: float) -> float:
        """Return a score after a use: 50, 60, 70, 75, and so on.

        >>> Reflection().raise_score(70)
        75.0
        """
        gain = next((gain for below, gain in self.steps if score < below), 0.0)
        return float(min(100, score + gain))

    def decay(self, score: float, idle: timedelta) -> float:
        """Return a score after some time without a recall, at least `floor` if it was higher.

        >>> round(Reflection().decay(60, timedelta(days=104)), 1)
        30.0
        """
        excess = idle - self.idle
        if excess <= timedelta(0) or score <= self.floor:
            return score
        return float(max(self.floor, score * 0.5 ** (excess / self.half_life)))


class Pruning(_PolicySection):
    """When a low score removes a memory, and where it goes."""

    below: Score = 0
    """Memories with lower scores are pruned; 0 prunes none."""
    min_age: Duration = timedelta(days=7)
    erase: bool = False
    """Whether pruned memories, and those beyond `limits.per_user`, are erased; if not, they are archived."""


class Merging(_PolicySection):
    """When memories are compared and count as duplicates, and when related ones are summarised."""

    nominate: Fraction = 0.2
    """Minimum cosine of memories that are compared; maintenance also compares those that share a rare word."""
    similarity: Fraction = 0.92
    """Minimum cosine of what a judge of your own calls the same; equal words need none."""
    max_pairs: Count = 20_000
    """Pairs of memories that one maintenance compares for each user; the next one goes on with those that are left."""
    summarise_below: Score = 0
    """Related memories with lower scores, of one class and with the same metadata, are replaced by one summary; 0
    summarises none."""
    related: Fraction = 0.6
    """Minimum cosine of related memories."""
    min_related: Annotated[int, Field(ge=2)] = 4
    """Minimum number of related memories for a summary."""


class Archiving(_PolicySection):
    """When memories are compressed and leave the index; a change, a hold or `restore` takes them back."""

    below: Score = 0
    """Idle memories with lower scores are archived; 0 archives none."""
    idle: Duration = timedelta(days=60)


class Limits(_PolicySection):
    """Limits of size and load."""

    per_user: Count = 10_000
    """Memories per user; beyond it, first replaced ones and then those with the lowest scores are pruned."""
    text: Count = 100_000
    """Characters of one memory."""
    recalls: Annotated[int, Field(ge=0)] = 1_024
    """Recalls that are cached; 0 for none."""
    vectors: Count = 200_000
    """Vectors of all users that are kept in RAM: one for each memory, and one for each passage of a long one."""
    busy: Count = 32
    """Concurrent recalls beyond which fewer candidates are ranked."""
    busy_candidates: Count = 8
    """Candidates ranked under such load."""


class Tagging(_PolicySection):
    """Tags for memories that are added without any."""

    tags: dict[str, str] = Field(default_factory=dict)
    """For each tag, words or phrases separated by commas; a memory that contains one of them gets the tag."""
    similarity: Fraction = 0.25
    """Minimum cosine with all words of a tag together, which also gives the tag. With the static embedder, 68 % of a
    few dozen statements on eight topics got their tag this way, and 2 % a wrong one."""

    @field_validator("tags")
    @classmethod
    def _normalise(cls, tags: dict[str, str]) -> dict[str, str]:
        if not all(tag.strip() for tag in tags):
            raise ValueError("a tag must not be blank")
        return {tag.strip().casefold(): about for tag, about in tags.items()}


class PersonalDataRules(_PolicySection):
    """What becomes of texts that hold an e-mail address or a phone number: the actions are those of `secrets`."""

    action: Literal["keep", "private", "refuse"] = "keep"
    kinds: tuple[Literal["email", "phone"], ...] = ("email", "phone")
    regions: tuple[Annotated[str, Field(pattern="^[A-Z]{2}$")], ...] = ()
    """Countries (ISO 3166, such as `DE`) whose national formats of phone numbers count besides international ones."""


class AuditRules(_PolicySection):
    """What the audit log holds."""

    pseudonyms: bool = False
    """Whether `audit.events` without a `user_id` shows hashes in place of users' ids. Needs an `audit_key`."""


def _default_classes() -> dict[PolicyClass, ClassRule]:
    return {
        "canonical": ClassRule(boost=1.0, prune=False, share=True),
        "factual": ClassRule(ttl=timedelta(days=30), boost=0.5),
        "intent_bound": ClassRule(ttl=timedelta(hours=24), boost=0.2),
        "ephemeral": ClassRule(ttl=timedelta(hours=6), boost=-0.5),
        "private": ClassRule(ttl=timedelta(days=7), on_request=True),
        "instruction": ClassRule(prune=False),
    }


class Policy(_PolicySection):
    """All rules of a memory. `Policy()` has the defaults, and `paper()` the published rules.

    >>> Policy().rule("ephemeral").ttl
    datetime.timedelta(seconds=21600)
    """

    classes: dict[PolicyClass, ClassRule] = Field(default_factory=_default_classes)
    user_class: PolicyClass = "factual"
    """Class of what a user says (source `chat_user`), unless the caller names one."""
    user_ttl: Duration | None = None
    """Lifetime of facts that a user states, and maximum for the rest of what a user says; None: until changed or
    forgotten."""
    chat_ttl: Duration | None = timedelta(days=7)
    """Maximum lifetime of messages and of what assistants say, whatever their class; None for that of the class."""
    secrets: Literal["private", "refuse", "keep"] = "private"
    """What becomes of texts that hold a key, a password or a card number: they are stored as `private`, with their
    lifetime unchanged, refused, or stored like others."""
    personal_data: PersonalDataRules = PersonalDataRules()
    relevance: Relevance = Relevance()
    ranking: Ranking = Ranking()
    reflection: Reflection = Reflection()
    pruning: Pruning = Pruning()
    merging: Merging = Merging()
    archiving: Archiving = Archiving()
    tagging: Tagging = Tagging()
    limits: Limits = Limits()
    audit: AuditRules = AuditRules()

    @model_validator(mode="before")
    @classmethod
    def _fill_defaults(cls, data: Any) -> Any:  # noqa: ANN401
        """Keep the defaults of classes, and of values of a class, that the data doesn't name."""
        classes = data.get("classes") if isinstance(data, Mapping) else None
        if not isinstance(classes, Mapping):
            return data
        known = _default_classes()
        merged: dict[Any, Any] = {name: rule for name, rule in known.items() if name not in classes}
        for name, values in classes.items():
            base = known[name].model_dump() if name in known else {}
            merged[name] = {**base, **values} if isinstance(values, Mapping) else values
        return {**data, "classes": merged}

    def rule(self, name: PolicyClass) -> ClassRule:
        """Return the rules of a class."""
        return self.classes[name]

    @classmethod
    def paper(cls) -> Self:
        """Return the published rules: low scores prune, summarise, archive and aren't recalled; what a user says ends.

        Source: MemoryArchitect, sections B to H.
        """
        return cls.from_dict(
            {
                "user_class": "intent_bound",
                "user_ttl": "7d",
                "ranking": {"threshold": 0.3},
                "reflection": {"unused": 5, "contradicted_yields": True},
                "pruning": {"below": 20, "erase": True},
                "merging": {"summarise_below": 30},
                "archiving": {"below": 30},
            }
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a policy from plain values; keys that aren't given keep their defaults.

        Raises:
            PolicyError: an unknown key or an invalid value; the message names the key.
        """
        return cls._validate(data, "invalid policy")

    @classmethod
    def from_yaml(cls, file: str | Path) -> Self:
        """Read a policy from a YAML file; keys that aren't given keep their defaults.

        Raises:
            PolicyError: no such file, invalid YAML, an unknown key or an invalid value; the message names the key.
        """
        from meve._yaml_limits import read_yaml

        try:
            data = read_yaml(Path(file))
        except (OSError, ValueError) as cause:
            raise PolicyError(f"the policy {file} can't be read: {cause}") from cause
        if data is not None and not isinstance(data, dict):
            raise PolicyError(f"the policy {file} must hold keys and values, got: {type(data).__name__}")
        return cls._validate(data or {}, f"invalid policy {file}")

    @classmethod
    def _validate(cls, data: Mapping[str, Any], problem: str) -> Self:
        try:
            return cls.model_validate(data)
        except ValidationError as cause:
            raise PolicyError(f"{problem}: {_describe_errors(cause)}") from cause

    def to_yaml(self) -> str:
        """Return all values as YAML that `from_yaml` reads."""
        import yaml

        return str(yaml.safe_dump(_to_plain(self.model_dump()), sort_keys=False))


def _describe_errors(error: ValidationError) -> str:
    """Return each invalid key with its problem, and the known keys for an unknown one."""
    parts = []
    for each in error.errors(include_url=False):
        key = ".".join(map(str, each["loc"])).removesuffix(".[key]")
        if each["type"] == "extra_forbidden":
            parts.append(f"{key} is unknown; known there: {', '.join(_known_keys(each['loc'][:-1]))}")
        else:
            value = f", got {each['input']!r:.60}" if not isinstance(each["input"], Mapping) else ""
            parts.append(f"{key}: {each['msg']}{value}")
    return "; ".join(parts)


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Policy
    for name in location:
        field = model.model_fields.get(str(name))
        kind = ClassRule if field is None or str(name) == "classes" else field.annotation
        model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else ClassRule
    return sorted(model.model_fields)


def _to_plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
        unit = next((unit for unit in "dhm" if micros % _MICROS[unit] == 0), "s")
        return f"{Decimal(micros) / _MICROS[unit]:f}{unit}"
    if isinstance(value, dict):
        return {key: _to_plain(each) for key, each in value.items()}
    return [_to_plain(each) for each in value] if isinstance(value, list | tuple) else value
