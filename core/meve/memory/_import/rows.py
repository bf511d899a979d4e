"""The rows of exports, and the records that they describe: of `memory.export`, of mem0, and of LangGraph stores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, TypeAlias

from meve.conversation.outcomes import NO_OUTCOMES, OutcomeStatistics
from meve.errors import ValidationError
from meve.memory._expiry import after, expiry_of
from meve.memory._passages import MAX_PASSAGES, PARTS
from meve.memory._timestamps import check_moment, check_past, from_micros
from meve.memory.items.item import Put, check_namespace, item_id, metadata_of, searchable, value_text
from meve.memory.items.namespace_pattern import NamespacePattern
from meve.memory.policy import Policy, PolicyClass, RecordSource
from meve.memory.records import (
    NAME_LENGTH,
    VALUE_LENGTH,
    MemoryRecord,
    RecordKind,
    UserId,
    check_choice,
    check_count,
    check_flag,
    check_id,
    check_metadata,
    check_tags,
    check_text,
    kind_of,
    user_key,
)

ImportFormat: TypeAlias = Literal["meve", "mem0", "langgraph"]
"""Who wrote an export: `memory.export`, mem0's `get_all`, or a LangGraph store's `search`, as langmem fills it."""
Row: TypeAlias = Mapping[str, Any]
_PARTS = ("records", "history", "archived")
"""The lists of an export, in which the rows are numbered in this order."""
_MEM0_SCOPES = ("agent_id", "run_id", "app_id", "actor_id", "role", "attributed_to")
"""Fields of mem0 that become metadata."""
_MOST = 2**62
"""The largest count; a store's columns hold no larger ones."""
_NAMES = frozenset(f.name for f in fields(MemoryRecord))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """What the caller says about the rows."""

    policy: Policy
    now: datetime
    user_id: UserId | None
    """The only owner; None for the owner that each row names."""
    namespaces: NamespacePattern | None
    """Where namespaces name their owner."""
    source: RecordSource
    policy_class: PolicyClass

    def owner(self, named: object) -> UserId:
        """Return the owner of a row that names this one."""
        if named is None and self.user_id is None:
            raise ValidationError("it names no user: give user_id")
        if named is None:
            named = self.user_id
        key = user_key(named)
        if self.user_id is not None and key != user_key(self.user_id):
            raise ValidationError(f"it belongs to user {named!r:.80}, not to user_id {self.user_id!r:.80}")
        return named  # type: ignore[return-value]


def detect_format(data: object) -> ImportFormat:
    """Return who wrote an export.

    Raises:
        ValidationError: no known export looks like this.
    """
    if isinstance(data, Mapping) and isinstance(data.get("records"), list) and "user_id" in data:
        return "meve"
    rows = _rows_of_list(data)
    first = next((row for row in rows or () if isinstance(row, Mapping)), None)
    if rows == [] or (first is not None and "memory" in first):
        return "mem0"
    if first is not None and {"namespace", "key", "value"} <= first.keys():
        return "langgraph"
    raise ValidationError(
        "data must be what memory.export returns, mem0's get_all, or a list of LangGraph items with namespace, key and "
        f"value, got {data!r:.80}: parse the JSON first"
    )


def read_rows(data: Any, kind: ImportFormat) -> list[object]:  # noqa: ANN401
    """Return the rows of an export, in the order of their numbers.

    Raises:
        ValidationError: the export isn't of this format.
    """
    if kind == "meve" and isinstance(data, Mapping):
        lists = [data.get(part, []) for part in _PARTS]
        if all(isinstance(each, list) for each in lists):
            return [row for each in lists for row in each]
    elif kind != "meve" and (rows := _rows_of_list(data)) is not None:
        return rows
    raise ValidationError(f"data must be an export of the format {kind!r}, got {data!r:.80}")


def _rows_of_list(data: object) -> list[object] | None:
    if isinstance(data, Mapping):
        data = next((data[name] for name in ("results", "items", "memories") if name in data), None)
    return list(data) if isinstance(data, Sequence) and not isinstance(data, str | bytes) else None


def record_of_export(row: Row, rules: RowRules) -> MemoryRecord:
    """Return a record of `memory.export`, with all its fields. Without `expires_at`, it lives as long as a new one."""
    kind: RecordKind = check_choice(row.get("kind"), "kind", RecordKind)
    source: RecordSource = check_choice(row.get("source"), "source", RecordSource)
    if kind_of(source) != kind:
        raise ValidationError(f"kind must be {kind_of(source)!r} for source {source!r}, got {kind!r}")
    policy_class: PolicyClass = check_choice(row.get("policy_class"), "policy_class", PolicyClass)
    checks = _checks(rules, kind)
    values = {name: checks[name](row[name]) for name in checks.keys() & row.keys() if row[name] is not None}
    text, limit = row.get("text"), rules.policy.limits.text
    if kind == "fact" or kind == "summary":
        check_text(text, "text", limit)
    elif not isinstance(text, str) or searchable(text, limit) != text:
        raise ValidationError(f"text must be a text of at most {limit:,} characters, got {text!r:.80}")
    if "created_at" not in values:
        raise ValidationError("created_at is missing: give the time at which it was added")
    if "expires_at" not in row:
        values["expires_at"] = expiry_of(rules.policy, policy_class, source, rules.now)
    record = MemoryRecord(
        user_id=rules.owner(row.get("user_id")), id=check_id(row.get("id")), kind=kind, text=str(text), source=source,
        policy_class=policy_class, **{"expires_at": None, **values},
    )  # fmt: skip
    if kind == "message" and record.session_id is None:
        raise ValidationError("session_id is missing: a message belongs to a session")
    if kind == "item" and record.id != item_id(record.metadata.get("namespace"), record.metadata.get("key")):  # type: ignore[arg-type]
        raise ValidationError(f"id must be that of its namespace and key, got {record.id!r:.80}")
    return record


def record_of_mem0(row: Row, rules: RowRules) -> MemoryRecord:
    """Return a record of a memory of mem0. See `GovernedMemory.import_` for the fields that are read."""
    found = row.get("metadata")
    metadata = {} if found is None else check_metadata(found)
    metadata |= {name: row[name] for name in _MEM0_SCOPES if row.get(name) is not None and name not in metadata}
    created, updated = (
        None if row.get(name) is None else check_past(_parse(row[name], name), name, rules.now)
        for name in ("created_at", "updated_at")
    )
    end = _end_of_day(row.get("expiration_date"))
    own = expiry_of(rules.policy, rules.policy_class, rules.source, rules.now)
    return MemoryRecord(
        id=check_id(row.get("id")),
        user_id=rules.owner(row.get("user_id")),
        text=check_text(row.get("memory"), "memory", rules.policy.limits.text),
        kind=kind_of(rules.source),
        source=rules.source,
        policy_class=rules.policy_class,
        created_at=rules.now if created is None else created,
        valid_from=updated,
        expires_at=min((each for each in (own, end) if each is not None), default=None),
        tags=check_tags(row.get("categories") or ()),
        metadata=check_metadata(metadata),
        reflection=rules.policy.reflection.start,
    )


def record_of_item(row: Row, rules: RowRules) -> MemoryRecord:
    """Return the record of an item of a LangGraph store."""
    namespace = check_namespace(row.get("namespace"))
    if rules.namespaces is None:
        owner = rules.owner(None)
    else:
        named = rules.namespaces.owner_of(namespace) if rules.namespaces.fits(namespace) else None
        if named is None:
            raise ValidationError(f"namespace {namespace!r:.120} doesn't fit namespaces={rules.namespaces.text!r}")
        owner = rules.owner(named)
    put = Put(namespace=namespace, key=row.get("key"), value=row.get("value"))  # type: ignore[arg-type]
    created, updated = (
        rules.now if row.get(name) is None else check_past(_parse(row[name], name), name, rules.now)
        for name in ("created_at", "updated_at")
    )
    metadata = metadata_of(put, updated)
    value = metadata["value"]
    is_of_langmem = set(value) == {"kind", "content"}
    text = value_text({"content": value["content"]} if is_of_langmem else value)
    return MemoryRecord(
        id=item_id(namespace, put.key),
        kind="item",
        user_id=owner,
        text=searchable(text, rules.policy.limits.text),
        source="item",
        policy_class="canonical",
        created_at=created,
        expires_at=expiry_of(rules.policy, "canonical", "item", rules.now),
        valid_from=updated,
        metadata=metadata,
        reflection=rules.policy.reflection.start,
    )


READERS: Mapping[ImportFormat, Callable[[Row, RowRules], MemoryRecord]] = {
    "meve": record_of_export,
    "mem0": record_of_mem0,
    "langgraph": record_of_item,
}


def _checks(rules: RowRules, kind: RecordKind) -> dict[str, Callable[[Any], Any]]:
    """Return, by the name of a field of an exported record, the function that checks and converts its value."""
    now = rules.now

    def moment(name: str, *, past: bool = True) -> Callable[[Any], datetime]:
        return lambda value: check_past(_parse(value, name), name, now) if past else _parse(value, name)

    def score(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            raise ValidationError(f"reflection must be between 0 and 100, got {value!r:.40}")
        return float(value)

    def note(name: str) -> Callable[[Any], str]:
        return lambda value: "" if value == "" else check_text(value, name, NAME_LENGTH)

    def number(name: str) -> Callable[[Any], int]:
        return lambda value: min(check_count(value, name), _MOST)

    def metadata(value: object) -> dict[str, Any]:
        if kind == "item":
            return _item_metadata(value, rules)
        return check_metadata(value, "a message", VALUE_LENGTH) if kind == "message" else check_metadata(value)

    checks: dict[str, Callable[[Any], Any]] = {
        "created_at": moment("created_at"),
        "expires_at": moment("expires_at", past=False),
        "session_id": lambda value: check_text(value, "session_id", NAME_LENGTH),
        "tags": check_tags,
        "metadata": metadata,
        "reflection": score,
        "uses": number("uses"),
        "outcomes": _parse_outcomes,
        "superseded_by": check_id,
        "flagged": note("flagged"),
        "hold": note("hold"),
        "pinned": lambda value: check_flag(value, "pinned"),
        "derived_from": lambda value: tuple(sorted({check_id(each) for each in value})),
        "archived": lambda value: check_flag(value, "archived"),
        "version": lambda value: max(1, number("version")(value)),
        **{name: moment(name) for name in ("touched_at", "used_at", "valid_from", "restored_at")},
        "valid_to": moment("valid_to", past=False),
    }
    assert checks.keys() == _NAMES - {"id", "user_id", "text", "source", "policy_class", "kind"}
    return checks


def _item_metadata(given: object, rules: RowRules) -> dict[str, Any]:
    """Return the checked metadata of an item's record."""
    if not isinstance(given, Mapping) or not {"namespace", "key", "value", "updated", "ttl"} <= given.keys():
        raise ValidationError("metadata of an item must hold namespace, key, value, updated and ttl")
    updated, ttl = check_count(given["updated"], "updated"), given["ttl"]
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float)):
        raise ValidationError(f"ttl must be a number of seconds, got {ttl!r:.40}")
    life = None if ttl is None else timedelta(seconds=ttl)
    expiry_of(rules.policy, "canonical", "item", rules.now, life)  # refuses what no item can live
    put = Put(namespace=check_namespace(given["namespace"]), key=given["key"], value=given["value"], ttl=life)
    return metadata_of(put, check_past(from_micros(updated), "updated", rules.now)) | _parts(given.get(PARTS, []))


def _parts(given: object) -> dict[str, Any]:
    if not isinstance(given, list) or len(given) > MAX_PASSAGES:
        raise ValidationError(f"{PARTS} must be a list of at most {MAX_PASSAGES} lengths, got {given!r:.60}")
    return {PARTS: [check_count(length, PARTS) for length in given]} if given else {}


def _parse(value: object, name: str) -> datetime:
    """Return a moment in ISO 8601, in UTC."""
    try:
        return check_moment(datetime.fromisoformat(value) if isinstance(value, str) else None, name)
    except ValueError:
        raise ValidationError(f"{name} must be a time in ISO 8601 with a time zone, got {value!r:.60}") from None


def _end_of_day(value: object) -> datetime | None:
    """Return the end of a day in UTC, such as 2030-01-31; None for None, and for the last day of the year 9999."""
    if value is None:
        return None
    try:
        return after(datetime.combine(date.fromisoformat(str(value)[:10]), time(), UTC), timedelta(days=1))
    except ValueError:
        raise ValidationError(f"expiration_date must be a day such as 2030-01-31, got {value!r:.60}") from None


def order_of(records: Sequence[tuple[int, MemoryRecord, Row]]) -> Iterator[tuple[int, MemoryRecord]]:
    """Yield rows in the order in which they are written: origins first, messages by their place."""

    def key(each: tuple[int, MemoryRecord, Row]) -> tuple[int, int, int]:
        number, record, row = each
        place = row.get("place")
        return (len(record.derived_from), place if isinstance(place, int) else 0, number)

    yield from ((number, record) for number, record, _ in sorted(records, key=key))


def _parse_outcomes(value: object) -> OutcomeStatistics:
    row = value if isinstance(value, Mapping) else {}
    mean, squares = (
        each if isinstance(each, int | float) and not isinstance(each, bool) else -1
        for each in (row.get("mean"), row.get("squares"))
    )
    if not 0 <= mean <= 1 or not 0 <= squares < float("inf"):
        raise ValidationError(f"outcomes must hold count, mean in [0, 1] and squares of at least 0, got {value!r:.80}")
    count = min(check_count(row.get("count"), "the count of outcomes"), _MOST)
    return OutcomeStatistics(count=count, mean=float(mean), squares=float(squares)) if count else NO_OUTCOMES
