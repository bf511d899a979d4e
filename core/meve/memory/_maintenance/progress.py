"""Progress of comparing: which pairs of a user's records maintenance has compared, kept as a few numbers."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from meve._version import __version__
from meve.memory._audit.chain import AuditChain
from meve.memory._runtime import MemoryRuntime
from meve.memory.stores._settings import PROGRESS

Pair = tuple[str, str]
_LAST = 2**63 - 1
"""Above every row."""


def setting_of(chain: AuditChain, user: str) -> str:
    """Return the name of the setting that holds the progress of a user; in a file, it shows a keyed hash."""
    return PROGRESS + chain.pseudonym(user)


def fingerprint(runtime: MemoryRuntime) -> str:
    """Return a hash of what decides about a pair besides its records; with another one, all pairs are compared."""
    rules = runtime.policy.merging
    judges = [f"{type(each).__module__}.{type(each).__qualname__}" for each in (runtime.updates, runtime.contradiction)]
    parts = (__version__, rules.nominate, rules.similarity, *judges)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


class ComparingProgress:
    """Which pairs were compared since their records last changed.

    Records are visited by row, in turns; a visit compares a record with all others. The progress is, for ranges of
    rows, the user's version at the last visit. A pair is open if one of its records changed after both were visited.

    Args:
        stored: the progress as `to_json` returned it; None or empty for none.
        of: what the comparisons depend on; another one than in the stored progress begins anew.
        version: the user's version now.
        rows: by id, the rows of the records to compare.
        changed_since: returns the rows of the records that changed after a version.
    """

    def __init__(
        self, stored: str | None, of: str, version: int, rows: Mapping[str, int],
        changed_since: Callable[[int], set[int]],
    ) -> None:  # fmt: skip
        data = json.loads(stored) if stored else {}
        is_known = data.get("of") == of
        self._of, self._version, self._rows = of, version, rows
        self._ranges: list[tuple[int, int]] = [(row, at) for row, at in data["ranges"]] if is_known else [(_LAST, 0)]
        """The last row and the version of each range, in their order."""
        self._hand: int = data["hand"] if is_known else 0
        """The last row that was visited."""
        self._changed = {at: changed_since(at) for _, at in self._ranges}
        self._visited = {key: self._version_at(row) for key, row in rows.items()}
        self.left = 0
        """The number of open pairs that `take` left for the next time."""

    @property
    def has_open_pairs(self) -> bool:
        """Whether a record changed since its last visit."""
        return any(self._rows[key] in self._changed[at] for key, at in self._visited.items())

    def take(self, pairs: Iterable[Pair], most: int) -> list[Pair]:
        """Return the open ones of some pairs, at most `most` or all of one record, and count them as compared."""
        candidates = [pair for pair in pairs if self._is_open(pair)]
        by_record: dict[str, list[Pair]] = {}
        for pair in candidates:
            for key in pair:
                by_record.setdefault(key, []).append(pair)
        taken: set[Pair] = set()
        in_turn = sorted(self._rows, key=lambda key: (self._rows[key] <= self._hand, self._rows[key]))
        visited: list[int] = []
        for key in in_turn:
            new = [pair for pair in by_record.get(key, ()) if pair not in taken]
            if taken and new and len(taken) + len(new) > most:
                break
            taken.update(new)
            visited.append(self._rows[key])
        self.left = len(candidates) - len(taken)
        self._advance(visited, is_done=len(visited) == len(in_turn))
        return [pair for pair in candidates if pair in taken]

    def to_json(self) -> str:
        """Return the progress as JSON: versions and rows, without content or ids."""
        return json.dumps({"of": self._of, "hand": self._hand, "ranges": self._ranges})

    def _is_open(self, pair: Pair) -> bool:
        changed = self._changed[max(self._visited[key] for key in pair)]
        return any(self._rows[key] in changed for key in pair)

    def _version_at(self, row: int) -> int:
        return next(at for last, at in self._ranges if row <= last)

    def _advance(self, visited: Sequence[int], *, is_done: bool) -> None:
        if is_done:
            self._ranges, self._hand = [(_LAST, self._version)], 0
            return
        behind = [row for row in visited if row <= self._hand]
        self._set(self._hand, _LAST if behind else visited[-1])
        if behind:
            self._set(0, behind[-1])
        self._hand = visited[-1]

    def _set(self, first: int, last: int) -> None:
        """Note that the rows above `first` up to `last` were visited now."""
        ranges: list[tuple[int, int]] = []
        begin = 0
        for end, at in self._ranges:
            if begin < first:
                ranges.append((min(end, first), at))
            if begin < last <= end:
                ranges.append((last, self._version))
            if end > last:
                ranges.append((end, at))
            begin = end
        self._ranges = ranges
