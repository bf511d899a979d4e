"""The public face of governed memory: one user's records at a time, every read and every change by policy."""

import builtins
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from meve.clock import Clock
from meve.conversation.turn import TurnRecord
from meve.errors import ConfigurationError
from meve.memory._async_runner import AsyncRunner
from meve.memory._audit.audit_log import AuditLog
from meve.memory._audit.subject_access import Explanation, explain_recall, export_user
from meve.memory._classify.tags import Tagger
from meve.memory._contradiction.rules import Contradiction
from meve.memory._feedback.reflector import ReflectionResult, Reflector
from meve.memory._feedback.usage_judge import UsageJudge
from meve.memory._maintenance.maintenance import Background, Keeper
from meve.memory._maintenance.plan import Upkept
from meve.memory._maintenance.summaries import ExtractiveSummariser, Summariser
from meve.memory._recall.prompt import (
    Prompt,
    PromptBudget,
    compose_prompt,
    count_fact_tokens,
    parse_history,
    summarise_turns,
)
from meve.memory._recall.query import Seen, asked
from meve.memory._recall.searcher import Load, Recall, RecallCache, Searcher
from meve.memory._recall.user_index import Shelves
from meve.memory._runtime import Kit
from meve.memory._write.record_factory import Classifier
from meve.memory._write.writer import Erased, Writer, unknown
from meve.memory.items.items import Items
from meve.memory.messages.messages import Messages
from meve.memory.policy import Policy, PolicyClass, Source
from meve.memory.records import SHARED, MemoryRecord, UserId, checked_id, checked_text, user_key
from meve.memory.stores.protocol import Counts
from meve.ports import Embedder, TokenCounter, Verifier


class GovernedMemory:
    """Remembers by policy. Safe to share between threads; several processes may have one file open.

    Args are parts, and the file that they are over; `open` makes them.
    """

    def __init__(self, kit: Kit, summariser: Summariser | None = None, *, file: Path) -> None:
        self.file = file
        """Where it is kept, as an absolute path."""
        self.policy = kit.policy
        self.clock = kit.clock
        self.audit = AuditLog(kit.store, kit.clock)
        self._kit = kit
        self._summariser = summariser or ExtractiveSummariser(kit.embedder.embed_passages)
        self._writer = Writer(kit)
        load = Load(kit.policy.limits.busy)
        self._reflector = Reflector(kit, load)
        self._searcher = Searcher(
            kit=kit,
            shelves=Shelves(kit.store, kit.embedder.dimension, kit.policy.limits.vectors),
            cache=RecallCache(kit.policy.limits.recalls),
            load=load,
        )
        self.items = Items(kit, self._searcher, self._reflector)
        self.messages = Messages(kit, self._searcher, self._reflector)
        self._keeper = Keeper(kit, self._summariser, self._searcher.forget)
        self._background: builtins.list[Background] = []
        self._closed = False
        self._seen = Seen()
        self.run_async = AsyncRunner()
        """For async callers: `await memory.run_async(memory.search, …)` works in a thread."""

    @classmethod
    def open(
        cls,
        file: str | Path,
        *,
        policy: Policy | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: TokenCounter | str | None = None,
        clock: Clock | None = None,
        audit_key: bytes | None = None,
        contradiction: Contradiction | None = None,
        usage: UsageJudge | None = None,
        classifier: Classifier | None = None,
        tagger: Tagger | None = None,
        summariser: Summariser | None = None,
        verify_threshold: float = 0.5,
    ) -> Self:
        """The memory in a file, which is made if it isn't there.

        Args:
            file: where it is kept; beside it stand SQLite's `-wal` and `-shm` while it is open.
            policy: by which it is governed; the default one if None.
            embedder: as for a `Retriever`: None for the one that ships.
            verifier: likewise; it judges where a search asks for `verify`.
            tokens: counts budgets, as for a `Retriever`.
            clock: where the time comes from.
            audit_key: what the audit log hangs on, 16 bytes or more, to be kept elsewhere; without one the log shows
                accidents, and not intent.
            contradiction: tells whether two statements contradict each other; by rules if None. `NliContradiction` in
                `meve.memory._contradiction.nli` asks a model.
            usage: tells what an answer made of memories; by rules if None.
            classifier: tells the class of what is added without one.
            tagger: tells the tags of what is added without; by the words that the policy gives for them if None.
            summariser: makes one text of related memories or of older turns; extracts sentences if None.
            verify_threshold: the probability from which on a verifier lets a memory through, in [0, 1].

        Raises:
            StorageError: the file can't be opened, is damaged, or of a newer version.
            AuditError: its log hangs on another key.
            ConfigurationError: a part that can't be, or another embedder than the file was made with.
        """
        kit = Kit.open(
            file, policy=policy, embedder=embedder, verifier=verifier, tokens=tokens, clock=clock, audit_key=audit_key,
            contradiction=contradiction, usage=usage, classifier=classifier, tagger=tagger,
            verify_threshold=verify_threshold,
        )  # fmt: skip
        try:
            return cls(kit, summariser, file=Path(file).resolve())
        except BaseException:
            kit.store.close()
            raise

    def add(
        self,
        text: str,
        *,
        user_id: UserId,
        source: Source = "chat_user",
        policy_class: PolicyClass | None = None,
        id: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] | None = None,
        ttl: timedelta | None = None,
        expires_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        derived_from: Iterable[str] = (),
        reason: str = "on request",
    ) -> MemoryRecord:
        """Remember something of a user's. When this returns, it survives a power cut.

        Args:
            text: what to remember.
            user_id: whose it is; a string or an int.
            source: where it is from.
            policy_class: how it is governed; told by the classifier if None.
            id: its name among the user's records; one is made if None.
            session_id: the conversation that it is from.
            tags: what it is about; told by the tagger if None.
            ttl: how long it lives; by its class if None.
            expires_at: when its life ends, instead.
            metadata: JSON-plain values of your own.
            derived_from: ids of the user's records that it was made from. It lives no longer than any of them, and is
                erased with any of them.
            reason: for the audit log; holds no content.

        Raises:
            ValidationError: an argument that can't be; nothing is stored.
            DuplicateIdError: the id is taken.
            UnknownIdError: the user has none of an id that it was made from.
            ModelError: the embedder failed; nothing is stored.
            StorageError: the file can't be written.
        """
        return self._writer.add(
            user_key(user_id), user_id, text, reason, source=source, policy_class=policy_class, id=id,
            session_id=session_id, tags=tags, ttl=ttl, expires_at=expires_at, metadata=metadata,
            derived_from=derived_from,
        )  # fmt: skip

    def add_shared(
        self,
        text: str,
        *,
        source: Source = "doc",
        policy_class: PolicyClass = "canonical",
        id: str | None = None,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        reason: str = "on request",
    ) -> MemoryRecord:
        """Remember something that every user recalls. Only classes that the policy lets be shared.

        Raises:
            PolicyError: a class that may not be shared.
            ValidationError: as for `add`.
        """
        return self._writer.add(
            SHARED, None, text, reason, source=source, policy_class=policy_class, id=id, tags=tags, metadata=metadata
        )

    def search(
        self,
        query: str,
        *,
        user_id: UserId,
        tags: Collection[str] | None = None,
        classes: Collection[PolicyClass] | None = None,
        sources: Collection[Source] | None = None,
        session_id: str | None = None,
        within: timedelta | None = None,
        include_private: bool = False,
        verify: bool = False,
        without: Collection[str] = (),
        window: int | None = None,
        limit: int | None = 10,
        max_tokens: int = 512,
    ) -> Recall:
        """What a user's memory holds on a question: numbered facts under a budget, and the account of each.

        Args:
            query: the question.
            user_id: whose memory.
            tags: any of these; a memory without them comes back only if it ranks above every one with them, since a
                tag may be wrong.
            classes: only these.
            sources: only these.
            session_id: only of this conversation.
            within: only what was added so long ago at most.
            include_private: whether private memories may come back.
            verify: whether a verifier must let a memory through.
            without: what stands before the reader already: ids of memories, or texts, in which a memory stands whose
                sentences are all there. Such a one stays out, and the trace tells.
            window: of conversations, only so many turns before and after one that names something; None for all turns.
            limit: how many memories at most; None for as many as fit.
            max_tokens: the most tokens that the text may have.

        Raises:
            QueryError: a blank question.
            ValidationError: a user, class, source, tag or text that can't be.
        """
        question = asked(
            self.policy, self.clock.now(), query, user_id, tags=tags, classes=classes, sources=sources,
            session_id=session_id, within=within, include_private=include_private, verify=verify, without=without,
            window=window, limit=limit, max_tokens=max_tokens, seen=self._seen,
        )  # fmt: skip
        return self._searcher.search(question)

    def reflect(self, recall: Recall, *, answer: str) -> ReflectionResult:
        """Move the scores of what was recalled by what the answer made of it: used, unused, contradicted.

        Args:
            recall: what `search` returned.
            answer: what was answered with it.

        While more are recalling at once than the policy's `limits.busy`, it waits (`ReflectionResult.deferred`) for the next
        reflection without such a load, for `maintain`, or for `close`.

        Raises:
            ValidationError: no recall, or no text.
        """
        return self._reflector.reflect(recall, answer)

    def update(
        self,
        id: str,
        *,
        user_id: UserId,
        text: str | None = None,
        policy_class: PolicyClass | None = None,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
        expires_at: datetime | None = None,
        if_version: int | None = None,
        reason: str = "on request",
    ) -> MemoryRecord:
        """Change values of a record; those that aren't given stay, and so do owner, id, source and creation.

        With `if_version`, only if nobody has changed it since that version. What was made from others, or became one
        with them, is given no longer life than theirs.

        Raises:
            UnknownIdError: the user has none of that id.
            HoldError: it is on hold.
            ValidationError: a value that can't be, or another version.
        """
        return self._writer.update(
            user_key(user_id), id, reason, text=text, policy_class=policy_class, tags=tags, metadata=metadata, ttl=ttl,
            expires_at=expires_at, if_version=if_version,
        )  # fmt: skip

    def delete(self, id: str, *, user_id: UserId, reason: str = "on request", dry_run: bool = False) -> Erased:
        """Erase a record, and what was merged or summarised from it: text, vector, words, caches, archive, for good.

        With `dry_run` say what would be erased, and do nothing.

        Raises:
            UnknownIdError: the user has none of that id.
        """
        user = user_key(user_id)
        done = self._writer.delete(user, id, reason, dry_run=dry_run)
        if not dry_run:
            self._reflector.forget(user, done.erased)
            self._searcher.forget(user)
        return done

    def forget_user(self, *, user_id: UserId, reason: str = "on request", dry_run: bool = False) -> Erased:
        """Erase all records of a user, but for those on hold, which are named; with `dry_run` only say which."""
        user = user_key(user_id)
        done = self._writer.forget(user, reason, dry_run=dry_run)
        if not dry_run:
            self._reflector.forget(user)
            self._searcher.forget(user)
        return done

    def forget_session(
        self, session_id: str, *, user_id: UserId, all_or_none: bool = False, reason: str = "on request"
    ) -> Erased:
        """Erase all records of one of a user's sessions, and what was made from them; but for those on hold.

        Raises:
            HoldError: one is on hold, with `all_or_none`; nothing is erased.
        """
        user = user_key(user_id)
        done = self._writer.forget(user, reason, checked_text(session_id, "session_id"), all_or_none=all_or_none)
        self._reflector.forget(user, done.erased)
        self._searcher.forget(user)
        return done

    def delete_shared(self, id: str, *, reason: str = "on request") -> Erased:
        """Erase a shared record, and what every user's answers made of it.

        Raises:
            UnknownIdError: no such shared record.
        """
        done = self._writer.delete(SHARED, id, reason)
        self._reflector.forget(SHARED, done.erased)
        self._searcher.forget(SHARED)
        return done

    def hold(self, id: str, *, user_id: UserId, why: str = "held", reason: str = "on request") -> None:
        """Let nothing change or erase a record, `forget_user` and expiry included, until `release`.

        An expired record on hold stays erased from every read; it is kept, and not handed out.

        Raises:
            UnknownIdError: the user has none of that id; what is expired is not there.
        """
        self._writer.hold(user_key(user_id), id, checked_text(why, "why"), reason)

    def release(self, id: str, *, user_id: UserId, reason: str = "on request") -> None:
        """End a hold.

        Raises:
            UnknownIdError: the user has none of that id.
        """
        self._writer.hold(user_key(user_id), id, "", reason)

    def get(self, id: str, *, user_id: UserId) -> MemoryRecord:
        """One record: the user's own, or a shared one.

        Raises:
            UnknownIdError: the user has none of that id; what is expired is not there.
        """
        user, now, id = user_key(user_id), self.clock.now(), checked_id(id)
        for key in (user, SHARED):
            found = self._kit.store.find(key, id)
            if found is not None and not found.record.expired(now):
                return found.record
        raise unknown(id)

    def list(
        self, *, user_id: UserId, session_id: str | None = None, include_archived: bool = False
    ) -> builtins.list[MemoryRecord]:
        """All records of a user that aren't expired, by id; not the shared ones.

        Args:
            user_id: whose.
            session_id: only of this conversation.
            include_archived: whether archived ones are among them.

        Raises:
            ValidationError: a user or a session that can't be.
        """
        user, now = user_key(user_id), self.clock.now()
        session = None if session_id is None else checked_text(session_id, "session_id")
        found = [stored for _, stored in self._kit.store.changes(user, 0).records]
        if include_archived:
            found += self._kit.store.archived(user)
        mine = [s.record for s in found if session is None or s.record.session_id == session]
        return sorted((r for r in mine if not r.expired(now)), key=lambda r: r.id)

    def export(self, *, user_id: UserId) -> dict[str, Any]:
        """All that there is of a user, JSON-ready: records, archived ones, and the log's entries.

        What is expired or erased isn't among them.
        """
        return export_user(self._kit, user_key(user_id), user_id)

    def explain(
        self, about: str, *, user_id: UserId, limit: int = 10, include_archived: bool = False
    ) -> builtins.list[Explanation]:
        """What is remembered about something, private records included, and why: each with its entries in the log.

        Args:
            about: what to look for.
            user_id: whose.
            limit: how many at most.
            include_archived: whether archived ones are among them, which no search finds.

        Raises:
            QueryError: a blank text.
        """
        user = user_key(user_id)
        question = asked(self.policy, self.clock.now(), about, user_id, include_private=True, limit=limit)
        archived = self._searcher.look_in_archive(question) if include_archived else None
        return explain_recall(self._kit, user, self._searcher.look(question), archived)[:limit]

    def prompt(
        self,
        query: str,
        *,
        user_id: UserId,
        history: Sequence[TurnRecord] = (),
        system: str = "",
        max_tokens: int = 2_048,
        budget: PromptBudget | None = None,
        **search: Any,  # noqa: ANN401
    ) -> Prompt:
        """A prompt within a budget: facts from memory, older turns in brief, the last ones verbatim, the question.

        Args:
            query: the question.
            user_id: whose memory.
            history: turns so far, oldest first: (role, text), {"role": …, "content": …}, or texts that alternate.
            system: stands above all; never cut.
            max_tokens: of the whole prompt.
            budget: how they are shared; `max_tokens` goes before its own.
            search: as for `search`.

        Raises:
            ConfigurationError: system text and question alone don't fit.
            ValidationError: a turn that is none.
        """
        shared = replace(budget or PromptBudget(), max_tokens=max_tokens)
        turns = parse_history(history)
        parts: dict[str, Any] = {"system": system, "query": query, "budget": shared, "tokens": self._kit.tokens}
        summary = summarise_turns(turns, summariser=self._summariser, **parts)
        recall = self.search(query, user_id=user_id, max_tokens=count_fact_tokens(**parts), **search)
        return compose_prompt(recall, turns, summary=summary, **parts)

    def maintain(self, *, user_id: UserId | None = None, dry_run: bool = False) -> Upkept:
        """Expire, prune, merge, summarise, archive, keep to the cap: one round, of one user or of all.

        Reads never wait for it: what is expired isn't handed out, with or without.

        Args:
            user_id: whose; None for everybody's.
            dry_run: say what would be done, and do nothing; reflections that wait are reckoned with by the round alone.

        Raises:
            ModelError: a part that compares or summarises failed; all else is done, of every user.
        """
        if not dry_run:
            self._reflector.run_deferred()
        return self._keeper.maintain(None if user_id is None else [user_key(user_id)], dry_run=dry_run)

    def maintain_every(self, seconds: float) -> Background:
        """Rounds in a thread of their own, until `stop` is called or the memory closed.

        Raises:
            ConfigurationError: no positive number of seconds.
        """
        if not seconds > 0:
            raise ConfigurationError(f"a round every {seconds!r} s can't be: give a positive number")
        made = Background(self.maintain, seconds)
        self._background.append(made)
        return made

    def stats(self) -> Counts:
        """How much there is."""
        return self._kit.store.counts()

    @property
    def closed(self) -> bool:
        """Whether it has let go of its file."""
        return self._closed

    def close(self) -> None:
        """Stop what runs beside, and let go of the file."""
        for each in self._background:
            each.stop()
        self.run_async.close()
        try:
            self._reflector.run_deferred()
        finally:
            self._closed = True
            self._kit.store.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()
