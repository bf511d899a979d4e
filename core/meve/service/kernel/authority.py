"""The client of a graph kernel: asks it for slices, and believes only what its signature covers."""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from meve.conversation.graph import PlacedTurn, TurnGraph
from meve.conversation.slices import ClosedBranch, Slice, SlicePolicy
from meve.errors import AdmissibilityError, ConfigurationError, ValidationError
from meve.service.kernel._http import KernelConnection, RefusalError
from meve.service.kernel.records import TurnEntry, check_name, write_policy
from meve.service.kernel.tokens import Statement, verify_statement
from meve.signing_keys import VerifyingKey, index_keys

BATCH = 500
"""The number of turns that are added by one request."""

DIGESTS = 100_000
"""The most digests of turns that are kept."""

_NUMBER = (float, int)
_TURN = {"id": (str,), "digest": (str,), "priority": _NUMBER}
_CLOSED = dict(zip(ClosedBranch._fields, ((str,), (str,), (str,), (str,), _NUMBER, (int,)), strict=True))


class KernelAuthority:
    """Gets the slices of one conversation from a graph kernel. Safe to share between threads.

    It holds no key that signs (except with `hmac-sha256`, where one secret does both). Whatever a slice says is
    recomputed from this conversation's own turns, and must be what the kernel signed. If the kernel is down, slow, or
    answers with anything else, nothing is searched.

    Args:
        url: where the kernel listens, such as `http://127.0.0.1:8321`.
        bearer: the token that the kernel gave to this tenant.
        tenant: the tenant's name.
        conversation: the conversation's id.
        keys: the kernel's keys, as `read_verifying_keys` reads them.
        timeout: the seconds after which an answer is too late, above 0.
        content_key: a secret of the applications for `content_hash`; the same for all that share the conversation.
        plain_http: permits http:// to another machine, where others may read the bearer token.
        now: the time in seconds since 1970.

    Raises:
        ConfigurationError: an invalid argument.
        ValidationError: an invalid name.
    """

    def __init__(
        self,
        url: str,
        *,
        bearer: str,
        tenant: str,
        conversation: str,
        keys: Iterable[VerifyingKey],
        timeout: float = 2.0,
        content_key: bytes | None = None,
        plain_http: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.tenant, self.conversation = check_name(tenant, "tenant"), check_name(conversation, "conversation")
        if content_key is not None and (not isinstance(content_key, bytes) or len(content_key) < 16):
            raise ConfigurationError("content_key must be at least 16 bytes, or None")
        self._keys, self._content_key, self._now = index_keys(keys), content_key, now
        self._digests: dict[int, tuple[PlacedTurn, str]] = {}
        self._connection = KernelConnection(url, bearer=bearer, timeout=timeout, plain_http=plain_http)

    def close(self) -> None:
        """Close the connections to the kernel; the next request opens new ones."""
        self._connection.close()

    def add(self, turns: Iterable[PlacedTurn]) -> int:
        """Tell the kernel of turns, parents before their replies, and return how many it didn't know.

        The bearer token must permit it. The kernel gets a hash of each text, never the text. If it fails halfway, call
        it again: turns that are there already are left out.

        Raises:
            AdmissibilityError: the kernel is down or slow, or refused; the message holds its reason.
            ValidationError: an id that is too long or isn't valid UTF-8.
        """
        entries = [self._read_entry(turn) for turn in turns]
        added = 0
        for begin in range(0, len(entries), BATCH):
            rows = [
                {"id": e.id, "parents": list(e.parents), "phase": e.phase, "time": e.time, "content": e.content}
                for e in entries[begin : begin + BATCH]
            ]
            answer = self._ask("/turns", {"conversation": self.conversation, "turns": rows})
            if not isinstance(count := answer.get("added"), int):
                raise AdmissibilityError(f"the kernel's answer has no number of added turns: {answer!r:.80}")
            added += count
        return added

    def forget(self) -> None:
        """Let the kernel erase the conversation. The bearer token must permit it.

        Raises:
            AdmissibilityError: the kernel is down or slow, or refused; the message holds its reason.
        """
        self._ask("/forget", {"conversation": self.conversation})

    def cut(self, graph: TurnGraph, anchor: str, policy: SlicePolicy) -> Slice:
        """Return the slice for an anchor, after verifying the kernel's signature.

        Raises:
            UnknownIdError: no turn of the conversation has the anchor's id.
            AdmissibilityError: the kernel is down or slow, refused, or its slice isn't valid for this request.
        """
        graph.position(anchor)
        try:
            check_name(anchor, "anchor")
            for phase in policy.phases:
                check_name(phase, "a phase of the policy", may_be_empty=True)
        except ValidationError as cause:
            raise AdmissibilityError(f"no kernel can sign this slice: {cause}") from cause
        nonce = secrets.token_urlsafe(18)
        request = {
            "conversation": self.conversation, "anchor": anchor, "policy": write_policy(policy), "nonce": nonce,
        }  # fmt: skip
        return self.verify(self._ask("/slice", request), graph, anchor, policy, nonce)

    def verify(
        self, answer: Mapping[str, Any], graph: TurnGraph, anchor: str, policy: SlicePolicy, nonce: str = ""
    ) -> Slice:
        """Return the slice in a kernel's answer, after verifying it as `cut` does; `nonce` was sent with the request.

        Raises:
            AdmissibilityError: the answer isn't a valid slice for this anchor, policy, conversation and tenant.
        """
        turns = _read_rows(answer, "turns", _TURN)
        closed = tuple(map(ClosedBranch._make, _read_rows(answer, "closed", _CLOSED)))
        signed = [(turn, self._digest(graph, turn, digest), priority) for turn, digest, priority in turns]
        statement = Statement(
            tenant=self.tenant,
            conversation=self.conversation,
            anchor=anchor,
            policy=policy,
            turns=signed,
            closed=closed,
        )
        token = answer.get("token")
        try:
            verify_statement(token, statement, self._keys, self._now(), nonce)
        except ValidationError as cause:
            raise AdmissibilityError(f"the kernel's answer can't be verified: {cause}") from cause
        priorities = {turn: priority for turn, _, priority in turns}
        if anchor not in priorities or len(priorities) < len(turns):
            raise AdmissibilityError(f"the slice for {anchor!r:.80} holds a turn twice, or not its anchor")
        ordered = tuple(sorted(priorities, key=graph.positions.__getitem__))
        return Slice(
            anchor=anchor,
            policy=policy,
            turns=ordered,
            priorities={turn: priorities[turn] for turn in ordered},
            closed=closed,
            token=str(token),
        )

    def _digest(self, graph: TurnGraph, turn: str, claimed: str) -> str:
        """Return the digest of this conversation's own turn; the one that the answer claims only explains an error."""
        position = graph.positions.get(turn)
        if position is None:
            raise AdmissibilityError(f"the slice holds the turn {turn!r:.80}, which this conversation doesn't have")
        digest = self._compute_digest(graph.turns[position])
        if digest != claimed:
            raise AdmissibilityError(
                f"turn {turn!r:.80} differs here from what the kernel was told: another text, speaker, time, parent or "
                "phase, or another content_key"
            )
        return digest

    def _compute_digest(self, turn: PlacedTurn) -> str:
        known = self._digests.get(id(turn))
        if known is not None and known[0] is turn:  # turns are immutable
            return known[1]
        try:
            digest = self._read_entry(turn).digest
        except ValidationError as cause:
            raise AdmissibilityError(f"no kernel can sign turn {turn.id!r:.80}: {cause}") from cause
        if len(self._digests) >= DIGESTS:
            self._digests.clear()
        self._digests[id(turn)] = turn, digest
        return digest

    def _read_entry(self, turn: PlacedTurn) -> TurnEntry:
        return TurnEntry.from_turn(turn, self.tenant, self.conversation, self._content_key)

    def _ask(self, path: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return self._connection.post(path, request)
        except RefusalError as refusal:
            raise AdmissibilityError(f"the graph kernel refused: {refusal}") from refusal


def _read_rows(answer: Mapping[str, Any], name: str, kinds: Mapping[str, Sequence[type]]) -> list[tuple[Any, ...]]:
    """Return the rows of a list in an answer, after checking the type of each value, and that priorities are shares."""
    rows = answer.get(name)
    if not isinstance(rows, list):
        raise AdmissibilityError(f"the kernel's answer has no list named {name}: {answer!r:.80}")
    allowed, priority = set(product(*kinds.values())), list(kinds).index("priority")
    for row in rows:
        if not isinstance(row, list) or tuple(map(type, row)) not in allowed or not 0 <= row[priority] <= 1:
            raise AdmissibilityError(
                f"a row of {name} in the kernel's answer must hold {', '.join(kinds)}, got {row!r:.80}"
            )
    return rows
