"""Routes questions to a user's memory: plans what to read, reads it, and answers from it with checks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Any

from meve._telemetry import measure, reported, span
from meve.clock import Clock
from meve.components.llms import LanguageModelLike, resolve_llm
from meve.errors import ConfigurationError, ModelError, QueryError, ValidationError, wrap_errors
from meve.memory import GovernedMemory
from meve.memory._recall.formatting import fit_standing
from meve.memory._timestamps import check_time_zone
from meve.memory._wrapper_support import check_memory, check_search
from meve.memory.records import UserId, user_key
from meve.pipeline.query_check import check_query
from meve.routing._answering import RoutedAnswer, Step, make_prompt
from meve.routing._classifier import load_classifier
from meve.routing._evidence import RoutedRecall, collect
from meve.routing._groups import stems_with_groups
from meve.routing._language_check import warn_of_language
from meve.routing._llm import ask
from meve.routing._own_thread import run_in_own_thread
from meve.routing._plan import DecidedBy, RoutePlan, Tier
from meve.routing._reader import MemoryReader
from meve.routing._reports import describe_answer, describe_routed_recall
from meve.routing._router import route
from meve.routing._topic import topic_stems
from meve.routing._validator import Verdict, validate
from meve.routing.config import RouterConfig

_OVERHEAD = 192
"""The tokens of a prompt besides question, standing memories and evidence."""
_LEAST_EVIDENCE = 32


class MemoryRouter:
    """Answers one user's questions from the user's memory, and reads no more of it than a question needs.

    A question goes to one of three tiers: profile, targeted or deep. Plans and recalls need no language model.
    `docs/routing.md` describes the tiers and the checks.

    Args:
        memory: the memory.
        user_id: whose memory; no other user's is read.
        llm: the language model: a function of a prompt, a chat model of LangChain, an LLM of LlamaIndex, the address of
            a server, or a model's name. Only `answer` needs it, and options of `config` that say so.
        config: the settings.
        clock: the time against which expressions such as `last week` are resolved; None for the memory's clock.
        search: options of every search, as for `GovernedMemory.search`: filters such as `session_id`, and
            `include_private`, and `time_zone`, the user's.

    Raises:
        ConfigurationError: no memory, no language model, or an invalid option.
        ValidationError: an invalid user or filter.

    Source: MemFlow (Chen, Li, Wang 2026).
    """

    def __init__(
        self,
        memory: GovernedMemory,
        *,
        user_id: UserId,
        llm: LanguageModelLike | None = None,
        config: RouterConfig | None = None,
        clock: Clock | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> None:
        user_key(user_id)
        if config is not None and not isinstance(config, RouterConfig):
            raise ConfigurationError(f"config must be a RouterConfig, got {config!r:.60}")
        self.memory, self.user_id = check_memory(memory), user_id
        self.config = config or RouterConfig()
        self._llm = None if llm is None else resolve_llm(llm)
        if self.config.llm_router and llm is None:
            raise ConfigurationError("llm_router needs a language model: give MemoryRouter an llm, or leave it out")
        if clock is not None and not callable(getattr(clock, "now", None)):
            raise ConfigurationError(f"clock must be an object with the method now, or None, got {clock!r:.60}")
        self._clock = clock or memory.clock
        options = check_search(memory, search)
        unused = sorted(options.keys() & _SET_BY_ROUTER)
        if unused:
            raise ConfigurationError(f"{', '.join(map(repr, unused))} is set by the router: remove it from search")
        self._zone = check_time_zone(options.get("time_zone"))
        self._reader = MemoryReader(memory=memory, user_id=user_id, search=options)
        self._classifier = load_classifier()

    def plan(self, question: str, *, tier: Tier | str | None = None, max_tokens: int | None = None) -> RoutePlan:
        """Return how the memory is read for a question. Reads no memory.

        Args:
            question: the question.
            tier: the tier to take; None lets the router choose.
            max_tokens: the token budget of the evidence; None for the tier's.

        Raises:
            QueryError: the question is blank.
            ValidationError: an unknown tier, or a budget below 1.
        """
        check_query(question)
        warn_of_language(question, self.memory._warned)
        ask_llm = None if self._llm is None else partial(self._ask, doing="routing a question")
        plan = route(
            question, now=self._now(), config=self.config, classifier=self._classifier,
            ask_llm=ask_llm if tier is None else None,
        )  # fmt: skip
        if tier is not None:
            plan = _take(plan, _check_tier(tier), self.config, "caller", "the caller chose it")
        if max_tokens is None:
            return plan
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise ValidationError(f"max_tokens must be a whole number, 1 or more, got {max_tokens!r:.40}")
        return replace(plan, max_tokens=max_tokens)

    def recall(
        self,
        question: str | RoutePlan,
        *,
        tier: Tier | str | None = None,
        max_tokens: int | None = None,
        without: Collection[str] = (),
    ) -> RoutedRecall:
        """Return the evidence for a question, and log that it was recalled.

        Args:
            question: the question, or what `plan` returned for it.
            tier: the tier to take; None lets the router choose.
            max_tokens: the token budget of the evidence; None for the tier's. A count or a list may exceed the tier's
                budget, but never the one given here.
            without: content that the reader has seen, as for `GovernedMemory.search`.

        Raises:
            QueryError: the question is blank, or leaves no room for evidence in the model's window.
            ValidationError: an unknown tier, a budget below 1, or either of them with a plan.
            ModelError: the embedder or the verifier failed.
        """
        if isinstance(question, RoutePlan) and (tier is not None or max_tokens is not None):
            raise ValidationError(
                "tier and max_tokens must be left out with a plan, which holds them: replace(plan, …)"
            )
        plan = question if isinstance(question, RoutePlan) else self.plan(question, tier=tier, max_tokens=max_tokens)
        is_fixed = max_tokens is not None or plan.max_tokens != self.config.budget(plan.tier)
        return self._recall(plan, replace(self._reader, without=without), fixed=is_fixed)

    @reported("meve.answer", describe_answer)
    def answer(self, question: str) -> RoutedAnswer:
        """Answer a question from the memory; if an answer doesn't pass its check, try a heavier tier, once each.

        Raises:
            ConfigurationError: the router has no language model.
            QueryError: the question is blank, or leaves no room for evidence in the model's window.
            ModelError: a model failed, or the language model took longer than `RouterConfig.llm_timeout`.
        """
        if self._llm is None:
            raise ConfigurationError("answer needs a language model: give MemoryRouter an llm, or call recall")
        plan = self.plan(question)
        steps: list[Step] = []
        while True:
            step = self._attempt(plan)
            steps.append(step)
            heavier = plan.tier.heavier
            if step.verdict.passed or heavier is None:
                break
            plan = _take(
                plan, heavier, self.config, "escalation", f"the {plan.tier} tier failed: {step.verdict.reason}"
            )
        last = steps[-1]
        abstained = not last.verdict.passed and (self.config.abstain or not last.answer)
        text = self.config.abstention if abstained else last.answer
        return RoutedAnswer(text=text, abstained=abstained, steps=tuple(steps))

    async def aplan(self, question: str, *, tier: Tier | str | None = None, max_tokens: int | None = None) -> RoutePlan:
        """Run `plan` in a thread of its own, without blocking the event loop."""
        return await run_in_own_thread(self.plan, question, tier=tier, max_tokens=max_tokens)

    async def arecall(
        self,
        question: str | RoutePlan,
        *,
        tier: Tier | str | None = None,
        max_tokens: int | None = None,
        without: Collection[str] = (),
    ) -> RoutedRecall:
        """Run `recall` in a thread of its own, without blocking the event loop."""
        return await run_in_own_thread(self.recall, question, tier=tier, max_tokens=max_tokens, without=without)

    async def aanswer(self, question: str) -> RoutedAnswer:
        """Run `answer` in a thread of its own, without blocking the event loop."""
        return await run_in_own_thread(self.answer, question)

    def _now(self) -> datetime:
        return self._clock.now().astimezone(self._zone)

    @reported("search_memory", describe_routed_recall)
    def _recall(self, plan: RoutePlan, reader: MemoryReader, *, fixed: bool = False) -> RoutedRecall:
        tokens = self.memory._runtime.tokens
        with wrap_errors(ModelError, f"counting tokens with {tokens.name!r}"):
            room = self.config.window - self.config.answer_tokens - _OVERHEAD - tokens.count(plan.question)
        if room < _LEAST_EVIDENCE:
            raise QueryError(
                f"question must leave {_LEAST_EVIDENCE} of the model's {self.config.window} tokens for evidence, got a "
                f"question that leaves {max(room, 0)}: shorten it, or raise window"
            )
        with wrap_errors(ModelError, f"counting tokens with {tokens.name!r}"):
            standing = reader.find_standing(plan.question)
            shown, taken = fit_standing(self.memory, standing, room - _LEAST_EVIDENCE)
        self.memory._note_left_out(len(standing) - len(shown))
        stands = {record.id for record in shown}
        room -= taken
        most = min(plan.max_tokens if fixed else self.config.complete_tokens, room)
        fitted = replace(plan, max_tokens=min(plan.max_tokens, room))
        config = replace(self.config, complete_tokens=most)
        while True:
            versions = reader.versions()
            recall = collect(fitted, reader, config, tokens)
            recall = replace(recall, standing=tuple(r for r in recall.standing if r.id in stands))
            if reader.has_expired(recall):  # during the searches
                continue
            if reader.hand_out(recall, versions) and not reader.has_expired(recall):  # during the write
                return recall

    def _attempt(self, plan: RoutePlan) -> Step:
        evidence = self._recall(plan, self._reader)
        verdict = self._check_evidence(plan, evidence)
        if verdict is not None:
            return Step(plan=plan, evidence=evidence, answer="", verdict=verdict)
        prompt = make_prompt(plan, evidence, self.memory, self._now())
        answer = self._ask(prompt, doing="answering a question")
        verdict = validate(
            plan, answer, evidence, self.config, today=self._now().date(),
            ask_llm=partial(self._ask, doing="checking an answer"), verify=self._verify,
        )  # fmt: skip
        return Step(plan=plan, evidence=evidence, answer=answer, verdict=verdict)

    def _check_evidence(self, plan: RoutePlan, evidence: RoutedRecall) -> Verdict | None:
        """Return the verdict on evidence that holds no answer, so that nobody is asked; None for other evidence."""
        if not plan.needs_memory or not self.config.evidence_threshold:
            return None
        if evidence.is_empty:
            return Verdict(passed=False, check="no_evidence", reason="nothing was found")
        if evidence.sufficient or self._stands(plan, evidence):
            return None
        reason = evidence.trace.sufficiency["reason"]
        return Verdict(passed=False, check="no_evidence", reason=reason, score=evidence.sufficiency)

    def _stands(self, plan: RoutePlan, evidence: RoutedRecall) -> bool:
        """Return whether a standing memory may tell what the question asks.

        A pinned one always may, a wish if it has a word of the question, or is verified.
        """
        if any(record.policy_class != "instruction" for record in evidence.standing):
            return True
        texts = [record.text for record in evidence.standing]
        topic = topic_stems(plan.question, plan.period)
        if any(topic & stems_with_groups(text) for text in texts):
            return True
        return bool(texts) and max(self._verify(plan.question, texts)) >= self.config.evidence_threshold

    def _verify(self, claim: str, texts: Sequence[str]) -> Sequence[float]:
        verifier = self.memory._runtime.verifier
        with wrap_errors(ModelError, f"verifying with {verifier.name!r}"):
            scores: Sequence[float] = verifier.score(claim, list(texts)).tolist()
        return scores

    def _ask(self, prompt: str, *, doing: str) -> str:
        assert self._llm is not None
        start = perf_counter()
        try:
            with span("meve.llm"):
                return ask(self._llm, prompt, seconds=self.config.llm_timeout, doing=doing)
        finally:
            measure("meve.phase.duration", perf_counter() - start, {"meve.phase": "llm"})


_SET_BY_ROUTER = frozenset(
    {"limit", "max_tokens", "since", "until", "within", "include_superseded", "verify", "window"}
)
"""Options of a search that the router sets."""


def _take(plan: RoutePlan, tier: Tier, config: RouterConfig, by: DecidedBy, reason: str) -> RoutePlan:
    confidence = round(plan.chances.get(tier, 0.0), 4)
    return replace(plan, tier=tier, max_tokens=config.budget(tier), decided_by=by, reason=reason, confidence=confidence)


def _check_tier(tier: Tier | str) -> Tier:
    try:
        return Tier(tier)
    except ValueError:
        raise ValidationError(f"tier must be one of {', '.join(Tier)}, got {tier!r:.40}") from None
