"""The graph of turns and the bearer tokens of tenants."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from meve._json_limits import parse_json
from meve._repeating import repeat_rolled_back
from meve.errors import DuplicateIdError, StoreCorruptError, UnknownIdError, ValidationError
from meve.service._web.bearer_tokens import hash_token, make_token
from meve.service.kernel._graphs import GraphDatabase, Rows
from meve.service.kernel.records import TurnEntry, chain_version, check_name, first_version

_Stored: TypeAlias = tuple[str, str, str, float | None, str]

_TURN = "turn, parents, phase, time, content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a bearer token permits."""

    name: str
    tenant: str
    may_add: bool
    """Whether it may add turns and forget conversations, not only ask for slices."""


class GraphStore:
    """The turns of all tenants, and the tokens. Safe to share between threads and processes.

    Every method raises a StorageError if the database can't be used.
    """

    def __init__(self, database: GraphDatabase) -> None:
        self.database = database

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    @repeat_rolled_back
    def add(self, tenant: str, conversation: str, entries: Sequence[TurnEntry], most: int) -> tuple[int, int, str]:
        """Add turns, all or none, and return how many were new, how many there are, and the version of the graph.

        A turn that is there already, equal in all, is left out.

        Raises:
            DuplicateIdError: a turn is there already, and differs.
            UnknownIdError: a parent is neither there nor before its reply.
            ValidationError: more than `most` turns.
        """
        with self.database.writing() as rows:
            while (found := self._find(rows, tenant, conversation)) is None:  # again if it is forgotten meanwhile
                rows.execute(
                    "INSERT INTO kernel_conversations (tenant, conversation, version, turns) VALUES (?, ?, ?, 0) "
                    "ON CONFLICT DO NOTHING",
                    (tenant, conversation, first_version(tenant, conversation)),
                )
            number, version, turns = found
            new = self._select_new(rows, tenant, conversation, number, entries)
            if turns + len(new) > most:
                raise ValidationError(
                    f"conversation {conversation!r:.80} has {turns} turns and would get {len(new)} more: "
                    f"at most {most} are allowed"
                )
            if new:
                rows.executemany(
                    f"INSERT INTO kernel_turns (tenant, number, position, {_TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (tenant, number, turns + n, e.id, json.dumps(e.parents), e.phase, e.time, e.content)
                        for n, e in enumerate(new)
                    ],
                )
            version, turns = chain_version(version, new), turns + len(new)
            rows.execute(
                "UPDATE kernel_conversations SET version = ?, turns = ? WHERE tenant = ? AND number = ?",
                (version, turns, tenant, number),
            )
        return len(new), turns, version

    def _select_new(
        self, rows: Rows, tenant: str, conversation: str, number: int, entries: Sequence[TurnEntry]
    ) -> list[TurnEntry]:
        named = {each.id for each in entries}.union(*(each.parents for each in entries))
        stored = rows.execute(
            f"SELECT {_TURN} FROM kernel_turns WHERE tenant = ? AND number = ? AND turn {self.database.among}",
            (tenant, number, json.dumps(list(named))),
        ).fetchall()
        known = {entry.id: entry for entry in self._read_entries(stored, conversation)}
        new = []
        for entry in entries:
            if (same := known.get(entry.id)) is not None:
                if same.digest != entry.digest:
                    raise DuplicateIdError(
                        f"turn {entry.id!r:.80} is there already, with other parents, phase, time or content: "
                        "turns can't be changed; give an edited turn an id of its own"
                    )
                continue
            for parent in entry.parents:
                if parent not in known:
                    raise UnknownIdError(
                        f"turn {entry.id!r:.80} replies to {parent!r:.80}, which isn't there: add parents first"
                    )
            known[entry.id] = entry
            new.append(entry)
        return new

    @repeat_rolled_back
    def forget(self, tenant: str, conversation: str) -> int:
        """Erase a conversation, and return how many turns it had; 0 if there was none."""
        with self.database.writing() as rows:
            known = self._find(rows, tenant, conversation)
            if known is None:
                return 0
            rows.execute("DELETE FROM kernel_turns WHERE tenant = ? AND number = ?", (tenant, known[0]))
            rows.execute("DELETE FROM kernel_conversations WHERE tenant = ? AND number = ?", (tenant, known[0]))
        self.database.clean()
        return known[2]

    def version(self, tenant: str, conversation: str) -> str | None:
        """Return the version of a conversation's graph; None if there is none."""
        found = self.database.query(
            "SELECT version FROM kernel_conversations WHERE tenant = ? AND conversation = ?", (tenant, conversation)
        )
        return str(found[0][0]) if found else None

    def read(
        self, tenant: str, conversation: str, version: str | None = None, turns: int = 0
    ) -> tuple[str, list[TurnEntry]] | None:
        """Return the version of a conversation's graph and its turns, as they were at one time; None if there is none.

        Args:
            tenant: the tenant's name.
            conversation: the conversation's id.
            version: the version of a graph that the caller knows; None for none.
            turns: the number of its turns, which are left out.

        Raises:
            StoreCorruptError: the turns, after those of the known graph, don't yield the version.
        """
        with self.database.reading() as rows:
            known = self._find(rows, tenant, conversation, lock=False)
            if known is None:
                return None
            stored = rows.execute(
                f"SELECT {_TURN} FROM kernel_turns WHERE tenant = ? AND number = ? AND position >= ? ORDER BY position",
                (tenant, known[0], turns),
            ).fetchall()
        entries = self._read_entries(stored, conversation)
        if chain_version(version or first_version(tenant, conversation), entries) != known[1]:
            raise self._altered(conversation)
        return known[1], entries

    def check(self) -> None:
        """Check that the database can be read.

        Raises:
            StorageError: it can't.
        """
        self.database.query("SELECT 1 FROM kernel_tokens LIMIT 1")

    @repeat_rolled_back
    def grant(self, name: str, tenant: str, *, may_add: bool = False) -> str:
        """Create a bearer token, and return it; only its hash is stored.

        Raises:
            DuplicateIdError: the name is taken.
            ValidationError: an invalid name.
        """
        check_name(name, "name")
        check_name(tenant, "tenant")
        token = make_token("mvk")
        with self.database.writing() as rows:
            made = rows.execute(
                "INSERT INTO kernel_tokens (hash, name, tenant, may_add, created) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (hash_token(token), name, tenant, may_add, time.time()),
            ).rowcount
        if not made:
            raise DuplicateIdError(f"there is a token {name!r:.80} already: choose another name")
        return token

    @repeat_rolled_back
    def revoke(self, name: str) -> None:
        """Remove a bearer token; requests with it are refused from now on.

        Raises:
            UnknownIdError: no token has this name.
        """
        check_name(name, "name")
        with self.database.writing() as rows:
            if not rows.execute("DELETE FROM kernel_tokens WHERE name = ?", (name,)).rowcount:
                raise UnknownIdError(f"there is no token {name!r:.80}")

    def grants(self) -> list[Grant]:
        """Return what each bearer token permits, by name."""
        found = self.database.query("SELECT name, tenant, may_add FROM kernel_tokens ORDER BY name")
        return [Grant(name=name, tenant=tenant, may_add=bool(may_add)) for name, tenant, may_add in found]

    def authenticate(self, token: str) -> Grant | None:
        """Return what a bearer token permits; None if it is unknown."""
        found = self.database.query(
            "SELECT name, tenant, may_add FROM kernel_tokens WHERE hash = ?", (hash_token(token),)
        )
        return Grant(name=found[0][0], tenant=found[0][1], may_add=bool(found[0][2])) if found else None

    def _find(self, rows: Rows, tenant: str, conversation: str, *, lock: bool = True) -> tuple[int, str, int] | None:
        """Return number, version and count of turns; by default locked until the end of the transaction."""
        row: tuple[int, str, int] | None = rows.execute(
            "SELECT number, version, turns FROM kernel_conversations WHERE tenant = ? AND conversation = ?"
            + (self.database.lock if lock else ""),
            (tenant, conversation),
        ).fetchone()
        return row

    def _read_entries(self, stored: Sequence[_Stored], conversation: str) -> list[TurnEntry]:
        try:
            return [
                TurnEntry(id=turn, parents=tuple(parse_json(parents)), phase=phase, time=moment, content=content)
                for turn, parents, phase, moment, content in stored
            ]
        except (ValueError, TypeError) as cause:
            raise self._altered(conversation) from cause

    def _altered(self, conversation: str) -> StoreCorruptError:
        return StoreCorruptError(
            f"the turns of {conversation!r:.80} in {self.database.name} don't yield the version of their graph: it was "
            "altered; restore it, or forget the conversation and add its turns anew"
        )
