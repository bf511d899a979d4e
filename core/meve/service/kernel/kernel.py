"""The graph kernel itself, without its HTTP face: adds turns, cuts slices, and signs them."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from cachetools import LRUCache

from meve.conversation.graph import PlacedTurn, TurnGraph
from meve.conversation.slices import ClosedBranch, SlicePolicy, cut_slice
from meve.errors import StoreCorruptError, UnknownIdError, ValidationError
from meve.service.kernel._graphs import open_graph
from meve.service.kernel._store import GraphStore
from meve.service.kernel.limits import KernelLimits
from meve.service.kernel.records import TurnEntry, check_name, first_version
from meve.service.kernel.tokens import Header, Statement, sign_statement, write_closed, write_turns
from meve.signing_keys import SigningKeys

MAX_CLOSED = 1_000
"""The most closed branches that a slice names: those of the highest priority."""

_LOADS = 16
_EMPTY = TurnGraph.from_turns([])


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSlice:
    """A slice with the signature of the kernel."""

    turns: tuple[tuple[str, str, float], ...]
    """Id, digest and priority of each turn, in the kernel's order."""
    closed: tuple[ClosedBranch, ...]
    """The branches beside the slice; of more than 1,000 those with the highest priority."""
    turns_json: str
    """The turns as they are signed."""
    closed_json: str
    """The closed branches as they are signed."""
    version: str
    """The version of the graph."""
    token: str
    is_cached: bool
    """Whether the slice was cut for an earlier request; the signature is always new."""


@dataclass(frozen=True, slots=True)
class _Graph:
    version: str
    graph: TurnGraph
    digests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Cut:
    turns: tuple[tuple[str, str, float], ...]
    closed: tuple[ClosedBranch, ...]
    turns_json: str
    closed_json: str


def _count_turns(cut: _Cut) -> int:
    """Return for how many turns a slice counts in memory: one for each 100 bytes of its JSON, which long ids fill."""
    return 16 + (sys.getsizeof(cut.turns_json) + sys.getsizeof(cut.closed_json)) // 100


class GraphKernel:
    """Holds the graph of turns and the signing keys. Safe to share between threads.

    Args:
        store: the turns.
        keys: the keys.
        limits: what a request may take.
        now: the time in seconds since 1970.
    """

    def __init__(
        self,
        store: GraphStore,
        keys: SigningKeys,
        limits: KernelLimits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.store, self.keys, self.limits, self._now = store, keys, limits or KernelLimits(), now
        most = self.limits.turns_in_memory
        self._graphs: LRUCache[tuple[str, str], _Graph] = LRUCache(most, getsizeof=lambda each: len(each.graph) + 1)
        self._cuts: LRUCache[object, _Cut] = LRUCache(most, getsizeof=_count_turns)
        self._lock = threading.Lock()
        self._loads = tuple(threading.Lock() for _ in range(_LOADS))

    @classmethod
    def open(cls, graph: str | Path, keys: SigningKeys, limits: KernelLimits | None = None) -> Self:
        """Open the kernel of a graph: an SQLite file, or a PostgreSQL database. What is missing is created.

        Args:
            graph: a path, or `postgresql://user@host:port/database`.
            keys: the keys.
            limits: what a request may take.

        Raises:
            StorageError: the file or database can't be used, or is of another kind.
            ConfigurationError: an invalid URL.
            MissingExtraError: psycopg isn't installed.
        """
        return cls(GraphStore(open_graph(graph)), keys, limits)

    def close(self) -> None:
        """Close the graph."""
        self.store.close()

    def add(self, tenant: str, conversation: str, entries: Sequence[TurnEntry]) -> tuple[int, int, str]:
        """Add turns, all or none; return how many were new, how many there are now, and the version of the graph.

        Turns can't be changed. One that is there already, equal in all, is left out.

        Raises:
            ValidationError: an invalid id, or more turns than allowed.
            DuplicateIdError: a turn is there already, and differs.
            UnknownIdError: a parent is neither there nor before its reply.
            StorageError: the graph can't be written.
        """
        check_name(tenant, "tenant")
        check_name(conversation, "conversation")
        if len(entries) > self.limits.batch_turns:
            raise ValidationError(f"{len(entries)} turns at once: at most {self.limits.batch_turns} are allowed")
        return self.store.add(tenant, conversation, entries, self.limits.conversation_turns)

    def forget(self, tenant: str, conversation: str) -> int:
        """Erase a conversation from the graph and from memory, and return how many turns it had.

        Raises:
            StorageError: the graph can't be written.
        """
        turns = self.store.forget(tenant, conversation)
        with self._loading(tenant, conversation), self._lock:  # whoever read it before keeps it until then
            self._graphs.pop((tenant, conversation), None)
            for key in [key for key in self._cuts if isinstance(key, tuple) and key[:2] == (tenant, conversation)]:
                del self._cuts[key]
        return turns

    def cut(self, tenant: str, conversation: str, anchor: str, policy: SlicePolicy, nonce: str = "") -> SignedSlice:
        """Return the slice for an anchor, signed together with the nonce of the request.

        Raises:
            UnknownIdError: the tenant has no such conversation, or the conversation no such turn.
            ValidationError: the slice would have more turns than allowed.
            StorageError: the graph can't be read, or was altered.
        """
        version = self.store.version(tenant, conversation)
        phases = tuple(sorted(policy.phases.items()))
        rules = (policy.parent, policy.child, policy.sibling, policy.min_priority, policy.max_turns, phases)
        key = (tenant, conversation, version, anchor, rules)
        with self._lock:
            cut = self._cuts.get(key)
        is_cached = cut is not None
        if cut is None:
            loaded = self._load(tenant, conversation, version)
            version = loaded.version  # turns may have been added meanwhile
            cut = self._cut(loaded, anchor, policy)
            with self._lock, suppress(ValueError):  # one slice may be larger than the cache
                if self._graphs.get((tenant, conversation)) is loaded:  # not if it was forgotten meanwhile
                    self._cuts[tenant, conversation, version, anchor, rules] = cut
        statement = Statement(
            tenant=tenant, conversation=conversation, anchor=anchor, policy=policy, turns=cut.turns_json,
            closed=cut.closed_json,
        )  # fmt: skip
        issued = int(self._now())
        signing = self.keys.signing
        header = Header(
            key=signing.id, version=str(version), issued=issued, expires=issued + self.limits.token_seconds, nonce=nonce
        )
        token = sign_statement(statement, header, signing)
        return SignedSlice(
            turns=cut.turns, closed=cut.closed, turns_json=cut.turns_json, closed_json=cut.closed_json,
            version=str(version), token=token, is_cached=is_cached,
        )  # fmt: skip

    def _cut(self, loaded: _Graph, anchor: str, policy: SlicePolicy) -> _Cut:
        most = self.limits.slice_turns
        wanted = most + 1 if policy.max_turns is None else min(policy.max_turns, most + 1)
        found = cut_slice(loaded.graph, anchor, replace(policy, max_turns=wanted), max_closed=MAX_CLOSED)
        if len(found.turns) > most:
            raise ValidationError(f"the slice has more than {most} turns: set max_turns in the policy")
        turns = tuple(
            (turn, loaded.digests[loaded.graph.positions[turn]], found.priorities[turn]) for turn in found.turns
        )
        return _Cut(turns, found.closed, write_turns(turns), write_closed(found.closed))

    def _loading(self, tenant: str, conversation: str) -> threading.Lock:
        return self._loads[hash((tenant, conversation)) % _LOADS]

    def _load(self, tenant: str, conversation: str, version: str | None) -> _Graph:
        """Return the graph, of this version or a later one."""
        with self._loading(tenant, conversation):  # concurrent requests build it once
            with self._lock:
                known = self._graphs.get((tenant, conversation))
            if known is not None and known.version == version:
                return known
            loaded = self._read(tenant, conversation, known)
            with self._lock, suppress(ValueError):  # one graph may be larger than the cache
                self._graphs[tenant, conversation] = loaded
            return loaded

    def _read(self, tenant: str, conversation: str, known: _Graph | None) -> _Graph:
        """Return the stored graph; of one that is known only the turns after it are read."""
        if known is not None:
            with suppress(StoreCorruptError):  # it was forgotten and added anew, or altered: read all
                return self._extend(tenant, conversation, known)
        return self._extend(tenant, conversation, _Graph(first_version(tenant, conversation), _EMPTY, ()))

    def _extend(self, tenant: str, conversation: str, known: _Graph) -> _Graph:
        stored = self.store.read(tenant, conversation, known.version, len(known.graph))
        if stored is None:
            raise UnknownIdError(f"there is no conversation {conversation!r:.80}: add its turns first")
        version, entries = stored
        try:
            graph = known.graph.extend(
                [PlacedTurn(id=each.id, text="", parents=each.parents, phase=each.phase) for each in entries]
            )
        except ValidationError as cause:
            raise StoreCorruptError(f"the turns of {conversation!r:.80} are no graph: {cause}") from cause
        digests = {each.id: each.digest for each in entries}
        new = tuple(digests[turn.id] for turn in graph.turns[len(known.graph) :])
        return _Graph(version, graph, known.digests + new)
