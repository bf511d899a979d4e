"""The log of an older version, whose entries hold users and ids as they are: keyed hashes take their place, once."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from meve.memory._audit.chain import (
    INITIAL_DIGEST,
    AuditChain,
    AuditRow,
    EventDraft,
    encode_detail,
)
from meve.memory._audit.log_names import hide_names
from meve.memory._timestamps import from_micros
from meve.memory.stores.protocol import SealedHead

Log: TypeAlias = tuple[Sequence[AuditRow], SealedHead]
Rewrite: TypeAlias = Callable[[Sequence[AuditRow], SealedHead], Log | None]


def rewrite_older(chain: AuditChain, rows: Sequence[AuditRow], head: SealedHead) -> Log | None:
    """Return the entries of a log with keyed hashes in place of names, as a new chain, and its head.

    The detail of each tells by a keyed hash which digest it had, so that a head that was kept is still found.

    Returns:
        None if the log isn't intact, or names nobody.
    """
    is_intact = chain.verify(rows, head.seq, head.digest, head.seal, None).ok
    if not is_intact or not any(_names_somebody(row, chain) for row in rows):
        return None
    before, hidden = INITIAL_DIGEST, []
    drafts = [
        EventDraft(
            at=from_micros(row.at), user=row.user, record=row.record, action=row.action, reason=row.reason,
            detail=json.loads(row.detail),
        )
        for row in rows
    ]  # fmt: skip
    for row, event in zip(rows, hide_names(drafts, chain), strict=True):
        detail = encode_detail({**event.detail, "former": chain.place(row.seq, row.digest.hex())})
        fields = (row.seq, row.at, event.user, event.record, event.action, event.reason, detail)
        before = chain.digest(before, fields)
        hidden.append(AuditRow(*fields, before))
    return hidden, replace(head, digest=before, seal=chain.seal(head.seq, before))


def _names_somebody(row: AuditRow, chain: AuditChain) -> bool:
    return chain.pseudonym(row.user) != row.user or chain.record_name(row.user, row.record) != row.record
