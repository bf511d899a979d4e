"""The tools of agents that both wrappers offer: remember, recall, update, forget and explain one user's memories."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from meve.errors import (
    ConfigurationError,
    DuplicateIdError,
    HoldError,
    PassageError,
    PolicyError,
    QueryError,
    UnknownIdError,
)
from meve.memory._audit.subject_access import Explanation
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._recall.formatting import format_recall, quote_line, quote_texts
from meve.memory._recall.searcher import Recall
from meve.memory._recall.user_index import Scope
from meve.memory._wrapper_support import check_memory, check_search, find_scope, find_shown_wishes
from meve.memory.memory import GovernedMemory
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import MemoryRecord, UserId, check_flag, check_scopes, user_key

TOOL_NAMES = ("remember", "recall", "update", "forget", "explain")
NO_MEMORY_MESSAGE = "Nothing is remembered about this."
WISH_NOTE = (
    "It is a fact that recalls find, no standing wish that holds for each answer: only the user's own words in a "
    "conversation, or the program, make one."
)


class UsersWordError(PolicyError):
    """A model would change what the user said."""


MODEL_ERRORS = (QueryError, PassageError, UnknownIdError, HoldError, UsersWordError)
"""Errors that the model can react to: they are returned to it instead of raised."""
_HIDDEN_KINDS = ("item", "message")
"""The kinds of records that the tools never show."""

ToolResult = tuple[str, dict[str, Any]]
"""The text for the model, and the complete result."""


class ToolCaller(NamedTuple):
    """The user and session of a tool call."""

    user_id: UserId
    session_id: str | None


class RememberInput(BaseModel):
    """The arguments that the model passes."""

    text: str = Field(description="one fact about the user, as a full sentence")


class QueryInput(BaseModel):
    """The arguments that the model passes."""

    query: str = Field(description="what to look for, as the user would ask it, such as: Where do I live?")


class ExplainInput(BaseModel):
    """The arguments that the model passes."""

    query: str = Field(description="what to look for, such as: Where do I live? Or the id of a memory")


class UpdateInput(BaseModel):
    """The arguments that the model passes."""

    id: str = Field(description="the id of the memory, as `recall` or `explain` names it")
    text: str = Field(description="the fact as it is now, as a full sentence")


class ForgetInput(BaseModel):
    """The arguments that the model passes."""

    id: str = Field(description="the id of the memory, as `recall` or `explain` names it")


@dataclass(frozen=True)
class MemoryTools:
    """The functions of the tools. The caller, never the model, names the user."""

    memory: GovernedMemory
    search: dict[str, Any]
    recall: Callable[..., Recall]
    """Searches the memory of `user_id` for a query."""
    source: RecordSource
    policy_class: PolicyClass
    may_erase: bool = False
    """Whether `forget` erases what the user said. If not, it hides that."""

    @classmethod
    def make(
        cls,
        memory: GovernedMemory,
        names: Collection[str],
        search: Mapping[str, Any] | None,
        source: RecordSource,
        policy_class: PolicyClass,
        recall: Callable[..., Recall] | None = None,
        *,
        may_erase: bool = False,
    ) -> "MemoryTools":
        """Check the arguments of a wrapper's `create_memory_tools`.

        Raises:
            ConfigurationError: no memory, an unknown tool, or an invalid option.
        """
        check_memory(memory)
        unknown = [names] if isinstance(names, str) else sorted(set(names) - set(TOOL_NAMES))
        if unknown:
            raise ConfigurationError(f"names must be a list of {', '.join(TOOL_NAMES)}, got {', '.join(unknown)}")
        options = check_search(memory, search)
        search_memory = recall or partial(memory.search, **options)
        return cls(memory, options, search_memory, source, policy_class, check_flag(may_erase, "may_erase"))

    def call(self, name: str, caller: ToolCaller, *arguments: str) -> ToolResult:
        """Run a tool with the arguments of the model, in their order; errors that concern the model become text."""
        try:
            return self.run(name, caller, *arguments)
        except MODEL_ERRORS as error:
            return describe_failure(error), {}

    def run(self, name: str, caller: ToolCaller, *arguments: str) -> ToolResult:
        """Run a tool with the arguments of the model, in their order. Raise MODEL_ERRORS where it is wrong."""
        functions: dict[str, Callable[..., ToolResult]] = {
            "remember": self._remember,
            "recall": self._recall,
            "update": self._update,
            "forget": self._forget,
            "explain": self._explain,
        }
        return functions[name](caller, *arguments)

    def _remember(self, caller: ToolCaller, text: str) -> ToolResult:
        parts = [self.memory.clock.now().date().isoformat(), _normalize(text), *self._scopes.values()]
        record_id = f"fact-{hashlib.sha256(' '.join(parts).encode(errors='replace')).hexdigest()[:16]}"
        try:
            record = self._add(caller, text, record_id)
        except DuplicateIdError:
            if self._is_current(caller, text):
                return "This is remembered already.", {"id": record_id, "added": False}
            record = self._add(caller, text, None)
        until = "" if record.expires_at is None else f" until {record.expires_at:%Y-%m-%d}"
        private = " It is private, as secrets are: recalls don't show it." if self._is_private(record) else ""
        is_wish = record.policy_class != "instruction" and is_standing_wish(text)
        wish = f" {WISH_NOTE}" if is_wish else ""
        return f"Remembered{until} (id {record.id}).{private}{wish}", {"id": record.id, "added": True}

    def _add(self, caller: ToolCaller, text: str, record_id: str | None) -> MemoryRecord:
        return self.memory.add(
            text, user_id=caller.user_id, id=record_id, session_id=caller.session_id, source=self.source,
            policy_class=self.policy_class, reason="a model asked for it", **self._scopes,
        )  # fmt: skip

    @property
    def _scopes(self) -> dict[str, Any]:
        """The agent and the run of `search`, to which belongs what the model writes."""
        return dict(check_scopes(self.search))

    def _is_private(self, record: MemoryRecord) -> bool:
        return self.memory.policy.rule(record.policy_class).on_request

    def _is_current(self, caller: ToolCaller, text: str) -> bool:
        """Return whether a recall would return the text: nothing newer and no answer contradicts it."""
        records = self.memory._facts.find_near(text, caller.user_id, include_private=True, **self._scopes)
        return any(_normalize(record.text) == _normalize(text) and not record.flagged for record in records)

    def _recall(self, caller: ToolCaller, query: str) -> ToolResult:
        text, recall = self.show_recall(caller, query)
        return text, recall.to_dict()

    def show_recall(self, caller: ToolCaller, query: str) -> tuple[str, Recall]:
        """Return what is remembered about a query, as text for the model and as a recall."""
        standing = "instruction" in (self.search.get("classes") or ("instruction",))
        wishes = find_shown_wishes(self.memory, caller.user_id, self.search) if standing else []
        recall = self.recall(query, user_id=caller.user_id, without=wishes)
        nothing = "" if recall.passages or recall.note else NO_MEMORY_MESSAGE
        shown = format_recall(self.memory, recall, ids=True, standing=standing)
        return "\n".join(filter(None, [shown, nothing])), recall

    def _update(self, caller: ToolCaller, record_id: str, text: str) -> ToolResult:
        former = self._check_shown(record_id, caller, "updated")
        is_users_word = former.source == "chat_user" or (
            former.kind == "summary" and self._would_erase_users_word(record_id, caller)
        )
        if is_users_word and self.source != "chat_user":
            raise UsersWordError(
                f"memory {record_id!r:.80} is what the user said, which only the user can change: ask for it"
            )
        record = self.memory.supersede(
            record_id, text, user_id=caller.user_id, source=self.source, reason="a model asked for it",
            policy_class=former.policy_class if self._is_private(former) else self.policy_class,
        )  # fmt: skip
        return f"Updated (id {record.id}).", {"id": record.id, "replaced": record_id}

    def _check_shown(self, record_id: str, caller: ToolCaller, done: str) -> MemoryRecord:
        """Return a memory that the tools show. Raise UnknownIdError for items, messages, archived and hidden ones."""
        with suppress(UnknownIdError):
            record = self.memory.get(record_id, user_id=caller.user_id)
            is_own = record.user_id is not None and record.kind not in _HIDDEN_KINDS and not record.archived
            if is_own and self._find_scope(caller).admits(record):
                return record
        raise _unknown(record_id, done)

    def _forget(self, caller: ToolCaller, record_id: str) -> ToolResult:
        self._check_shown(record_id, caller, "forgotten")
        if not self.may_erase and self.source != "chat_user" and self._would_erase_users_word(record_id, caller):
            user, reason = user_key(caller.user_id), "a model asked to forget it"
            hidden, held = self.memory._writer.hide(user, record_id, reason)
            content = (
                f"Hidden, not erased: {quote_line(', '.join(hidden))}. The user said this. It isn't recalled any more; "
                f"the user or the operator can restore it, or erase it for good.{_describe_held(held)}"
            )
            return content, {"erased": [], "hidden": hidden, "held": held, "left_closed": []}
        result = self.memory.delete(record_id, user_id=caller.user_id, reason="a model asked for it")
        if record_id in result.held:
            raise HoldError(f"memory {record_id!r:.80} is on hold ({result.held[record_id]}) and can't be erased")
        left = list(result.left_closed)
        earlier = (
            f" Earlier memories that it had replaced stay in the history: {quote_line(', '.join(left))}."
            if left
            else ""
        )
        content = f"Erased: {quote_line(', '.join(result.erased))}.{earlier}{_describe_held(result.held)}"
        done = {"erased": list(result.erased), "hidden": [], "held": dict(result.held), "left_closed": left}
        return content, done

    def _would_erase_users_word(self, record_id: str, caller: ToolCaller) -> bool:
        """Return whether erasing a memory would erase what the user said: the memory itself, or a copy of it."""
        report = self.memory.delete(record_id, user_id=caller.user_id, dry_run=True)
        for each in (record_id, *report.erased):
            with suppress(UnknownIdError):  # it has expired
                if self.memory.get(each, user_id=caller.user_id).source == "chat_user":
                    return True
        return False

    def _explain(self, caller: ToolCaller, query: str) -> ToolResult:
        text, visible = self.explain(caller, query)
        account = [
            {"id": each.record.id, "why": each.why, "events": [event.to_dict() for event in each.events]}
            for each in visible
        ]
        return text, {"explained": account}

    def explain(self, caller: ToolCaller, about: str) -> tuple[str, list[Explanation]]:
        """Return why the memory of an id, or those about a topic, are kept: as text for the model, and as a list."""
        with suppress(UnknownIdError, PassageError):
            return self.show_record(caller, about)
        return self._show(caller, self.memory.explain(about, user_id=caller.user_id, **self._scopes))

    def _show(self, caller: ToolCaller, explained: Iterable[Explanation]) -> tuple[str, list[Explanation]]:
        """Return the explanations that the tools may show, as text for the model and as a list."""
        scope = self._find_scope(caller)
        visible = [each for each in explained if scope.admits(each.record)]
        lines = []
        for each in visible:
            newer = each.replacement
            now = f'; now: "{newer.text}"' if newer is not None and scope.admits(newer) else ""
            lines.append(f"{each.record.text} (id {each.record.id}): {each.why}{now}")
        return quote_texts(lines) or NO_MEMORY_MESSAGE, visible

    def show_record(self, caller: ToolCaller, record_id: str) -> tuple[str, list[Explanation]]:
        """Return why one memory is kept. Raise UnknownIdError for items, messages, archived and hidden ones."""
        with suppress(UnknownIdError):
            explained = self.memory.explain_record(record_id, user_id=caller.user_id)
            text, visible = self._show(caller, [explained])
            if visible and not explained.archived and explained.record.kind not in _HIDDEN_KINDS:
                return text, visible
        raise _unknown(record_id, "explained")

    def _find_scope(self, caller: ToolCaller) -> Scope:
        """Return which memories the tools may show: those that the filters of `search` admit."""
        return find_scope(self.memory, caller.user_id, self.search)


def describe_failure(error: Exception) -> str:
    """Return what the model reads of an error."""
    return f"The call failed: {quote_line(str(error))}"


def _unknown(record_id: str, done: str) -> UnknownIdError:
    """Return the error for an id that the tools don't show. It doesn't tell whether there is such a memory."""
    return UnknownIdError(f"no memory {record_id!r:.80} that can be {done}: recall or explain names the ids")


def _describe_held(held: Mapping[str, str]) -> str:
    """Return a sentence on the memories that `forget` left since they are on hold; empty for none."""
    return f" On hold, so unchanged, and recalled as before: {quote_line(', '.join(held))}." if held else ""


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


TOOL_INPUTS: Mapping[str, tuple[type[BaseModel], str]] = {
    "remember": (RememberInput, "Remembers a fact about the user for later conversations."),
    "recall": (QueryInput, "Recalls what is remembered about the user, with ids."),
    "update": (UpdateInput, "Replaces a memory that has changed; the former text is kept."),
    "forget": (
        ForgetInput,
        "Forgets a memory, when the user asks for it: erases what a model wrote, and hides what the user said, unless "
        "the program lets it erase that, too. The answer says which.",
    ),
    "explain": (ExplainInput, "Tells what is remembered about something, or a memory by its id: since when, and why."),
}
"""By name: the arguments that the model passes, and what it is told about the tool."""
