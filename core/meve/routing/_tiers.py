"""What each tier reads: configurations of the memory's search, and how their results are joined."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any

import numpy as np

from meve.memory._recall.query import CANDIDATES
from meve.pipeline.phases.follow import extend_query
from meve.pipeline.trace import PhaseTrace
from meve.routing._first_and_last import asks_for_end, find_end
from meve.routing._groups import stems_with_groups
from meve.routing._plan import RoutePlan, Tier
from meve.routing._reader import Found, MemoryReader, time_of
from meve.routing._repeated_events import drop_parts, find_former, find_repeated
from meve.routing._rules import asks_for_past, counts_events, is_about_user
from meve.routing._states import prefer_held, split_times
from meve.routing._tellers import choose_told, prefer_teller
from meve.routing._topic import split_parts, topic_stems
from meve.routing.config import RouterConfig
from meve.types import Candidate, Dropped

VERIFIED = 24
"""The number of memories that the verifier reads, the best first."""
SUPPORT = "verifier"
"""The name of the verifier's probability among the scores of a candidate."""
_SUPPORT_WEIGHT = 0.3
"""The weight of the verifier's probability beside the policy's score."""
_LEAST_SHARE = 0.5
"""The least share of the best score where a memory answers the question; weaker memories are left out then."""
_KEPT_ANYWAY = 3
_LENGTH_WEIGHT, _USUAL_TOKENS = 0.03, 52
"""What each e-fold of length beyond the usual costs, since one long memory takes the place of several."""
_RELEVANT = 0.5
"""The least probability of a memory for a question that needs none."""
COMPLETE_CANDIDATES = 1_000
"""The number of memories that are ranked where everything that matches is read."""
_MATCHING_COSINE = 0.5
"""The least cosine of a memory that matches a question without sharing a word of its topic."""
_PART_WEIGHT, _HOP_WEIGHT = 0.95, 0.5
"""The most that a score for a part of the question, and for the question with evidence, is of the best score."""
_HOP_EVIDENCE, _HOP_WORDS, _HOP_CANDIDATES = 2, 60, 20
_PROFILE = (
    "Hello, I'm, my name is, and I work as a", "I live in this town, my address is, I moved to",
    "I work as a, I start at, my job", "my husband, my wife, our children, my cat, my dog", "what I like and prefer",
    "I hate, I don't like, I'm allergic to", "I want to, I plan to, I will",
)  # fmt: skip
"""What is searched for where a question asks for all that is known of the user: words in which users tell it."""
_PROFILE_EACH = 4
"""The number of memories of each of these searches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a tier found, before it is packed."""

    candidates: tuple[Candidate, ...]
    """Best first."""
    dropped: tuple[Dropped, ...] = ()
    matching: frozenset[str] = frozenset()
    """The ids of the memories that match, where everything that matches is read."""
    searches: tuple[str, ...]
    """The texts that were searched for."""
    found: tuple[Found, ...]
    """The results of the searches."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Further facts, for the trace."""

    @property
    def support(self) -> float | None:
        """The highest probability that a memory answers the question; None if none was verified."""
        scores = [c.scores[SUPPORT] for c in self.candidates if SUPPORT in c.scores]
        return max(scores) if scores else None


def gather(plan: RoutePlan, reader: MemoryReader, config: RouterConfig) -> Gathered:
    """Search the memory as a plan says."""
    if plan.tier is Tier.PROFILE:
        return _gather_profile(plan, reader)
    gathered = _gather_targeted(plan, reader, config) if plan.tier is Tier.TARGETED else _gather(plan, reader, config)
    if not gathered.candidates and _since(plan, config) is not None:
        again = gather(plan, reader, replace(config, filter_period=False))
        return replace(again, notes={**again.notes, "period": "nothing was added since then: all memories were read"})
    return gathered


def _gather_profile(plan: RoutePlan, reader: MemoryReader) -> Gathered:
    if plan.intent == "overview":
        searches = (plan.question, *_PROFILE) if topic_stems(plan.question) else _PROFILE
        found = [reader.look(text, candidates=_PROFILE_EACH * 3) for text in searches]
        return Gathered(candidates=_take_turns(found), searches=searches, found=tuple(found))
    found = [reader.look(plan.question, history=plan.history)]
    dropped: list[Dropped] = []
    if plan.intent == "chat":
        candidates, dropped = _split(found[0].candidates, lambda _: False)
    else:
        candidates = _verified(plan, found[0].candidates, reader)
    if plan.intent == "identity":
        candidates, dropped = _trim(candidates)
    if not plan.needs_memory and not needs_nearest(plan):
        candidates, others = _split(candidates, lambda c: c.scores.get(SUPPORT, 0.0) >= _RELEVANT)
        dropped += others
    return Gathered(candidates=tuple(candidates), dropped=tuple(dropped), searches=(plan.question,), found=tuple(found))


def needs_nearest(plan: RoutePlan) -> bool:
    """Return whether memories matter that answer no question: to advice, and to a task about the user."""
    return plan.intent == "advice" or (plan.intent == "task" and is_about_user(plan.question))


def _gather_targeted(plan: RoutePlan, reader: MemoryReader, config: RouterConfig) -> Gathered:
    searches = split_times(plan)
    since = _since(plan, config)
    found = [drop_parts(reader.look(text, since=since, history=plan.history)) for text in searches]
    ends = _find_ends(plan, reader, since)
    merged = _merge([found[0], *(_weigh(each, found[0], _PART_WEIGHT) for each in found[1:]), *ends])
    candidates, dropped = _trim_behind_ends(plan, _verified(plan, merged, reader), ends)
    return Gathered(
        candidates=tuple(candidates), dropped=tuple(dropped), searches=tuple(searches), found=(*found, *ends)
    )  # fmt: skip


def _find_ends(plan: RoutePlan, reader: MemoryReader, since: datetime | None) -> list[Found]:
    """Return the search that found the oldest or the newest memories of the topic, if the question asks for them."""
    if not asks_for_end(plan):
        return []
    everything = reader.look(plan.question, candidates=COMPLETE_CANDIDATES, since=since, history=True)
    return [replace(everything, candidates=find_end(plan, everything.candidates))]


def _gather(plan: RoutePlan, reader: MemoryReader, config: RouterConfig) -> Gathered:
    """Search for the question, its parts, and the question with the best evidence; or for all that matches."""
    since = _since(plan, config)
    most = COMPLETE_CANDIDATES if plan.is_complete else CANDIDATES
    question, *others = split_times(plan)
    first = drop_parts(reader.look(question, candidates=most, since=since, history=plan.history))
    found, searches = [first], [question]
    for part in others or split_parts(question):
        found.append(_weigh(reader.look(part, since=since, history=plan.history), first, _PART_WEIGHT))
        searches.append(part)
    counts = plan.is_complete and plan.intent == "count" and counts_events(plan.question)
    lists_former = plan.is_complete and plan.intent in ("count", "list") and asks_for_past(plan.question)
    if counts or lists_former:
        everything = reader.look(question, candidates=most, since=since, history=True)
        found += [find_repeated(first, everything)] if counts else []
        found += [find_former(everything)] if lists_former else []
    if not plan.is_complete:
        for evidence in first.candidates[: _HOP_EVIDENCE * (config.hops - 1)]:
            text = extend_query(plan.question, [evidence.passage.content], _HOP_WORDS)
            more = reader.look(text, candidates=_HOP_CANDIDATES, since=since, history=plan.history)
            new = tuple(c for c in more.candidates if c.id != evidence.id)  # the evidence is part of the query
            found.append(_weigh(replace(more, candidates=new), first, _HOP_WEIGHT))
            searches.append(text)
    ends = _find_ends(plan, reader, since)
    found += ends
    candidates, dropped = _verified(plan, _merge(found), reader), list[Dropped]()
    matching = _find_matching(plan, candidates) if plan.is_complete else frozenset()
    if plan.is_complete:  # what matches in other words is among the weak ones
        candidates = sorted(candidates, key=lambda c: c.id not in matching)
    else:
        candidates, dropped = _trim_behind_ends(plan, candidates, ends)
    return Gathered(
        candidates=tuple(candidates), dropped=tuple(dropped), matching=matching, searches=tuple(searches),
        found=tuple(found), notes={"ranked": len(first.candidates)},
    )  # fmt: skip


def _find_matching(plan: RoutePlan, candidates: Sequence[Candidate]) -> frozenset[str]:
    """Return the ids of the memories that share a word of the question's topic, or are similar to the question.

    If all that happened at a time is asked for, they must have been added then instead, or both if there is a topic.
    """
    topic = topic_stems(plan.question, plan.period)
    if plan.intent == "summary" and plan.period is not None:
        then = [c for c in candidates if plan.period.contains(time_of(c))]
        about = [c for c in then if not topic or not topic.isdisjoint(stems_with_groups(c.passage.text))]
        if about or not topic:
            return frozenset(c.id for c in choose_told(plan.question, about) or about)
    return frozenset(
        c.id
        for c in candidates
        if c.scores.get("dense", 0.0) >= _MATCHING_COSINE
        or c.scores.get(SUPPORT, 0.0) >= _RELEVANT
        or not topic.isdisjoint(stems_with_groups(c.passage.text))
    )


def _verified(plan: RoutePlan, candidates: Iterable[Candidate], reader: MemoryReader) -> list[Candidate]:
    """Return the candidates, best first by the policy's score and, of the first ones, the verifier's probability."""
    preferred = prefer_held(plan, prefer_teller(plan.question, list(candidates)))
    ordered = sorted(map(_charge, preferred), key=_rank)
    head, tail = ordered[:VERIFIED], ordered[VERIFIED:]
    if not head:
        return []
    chances = np.asarray(reader.verify(split_times(plan)[0], head))
    scored = [
        replace(
            c,
            scores={**c.scores, SUPPORT: float(chance)},
            score=(c.score or 0.0) + _SUPPORT_WEIGHT * float(chance),
            verified=bool(chance >= _RELEVANT),
        )
        for c, chance in zip(head, chances, strict=True)
    ]
    return [*sorted(scored, key=_rank), *tail]


def _charge(candidate: Candidate) -> Candidate:
    """Return a candidate with a lower score if it is longer than usual."""
    excess = max((candidate.tokens or 0) / _USUAL_TOKENS, 1.0)
    return replace(candidate, score=(candidate.score or 0.0) - _LENGTH_WEIGHT * float(np.log(excess)))


def _trim(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Dropped]]:
    """Return the candidates, best first; where one answers, without those far below the best."""
    if not any(candidate.verified for candidate in candidates):
        return list(candidates), []
    best = candidates[0].score or 0.0
    least = min(best, _LEAST_SHARE * best)  # a score may be negative
    firm = {c.id for c in candidates[:_KEPT_ANYWAY]}
    return _split(candidates, lambda c: c.id in firm or (c.score or 0.0) >= least)


def _trim_behind_ends(
    plan: RoutePlan, candidates: Sequence[Candidate], ends: Sequence[Found]
) -> tuple[list[Candidate], list[Dropped]]:
    """Return the oldest or newest memories, and behind them what `_trim` keeps of the others.

    All are kept for a state, which may be told in other words than the one that replaced it.
    """
    places = {c.id: place for found in ends for place, c in enumerate(found.candidates)}
    first = sorted((c for c in candidates if c.id in places), key=lambda c: places[c.id])
    others = [c for c in candidates if c.id not in places]
    kept, dropped = (others, []) if plan.state else _trim(others)
    return [*first, *kept], dropped


def _rank(candidate: Candidate) -> tuple[float, str]:
    return -(candidate.score or 0.0), candidate.id


def _merge(found: Sequence[Found]) -> tuple[Candidate, ...]:
    """Return the candidates of several searches, best first, each once with its highest score."""
    best: dict[str, Candidate] = {}
    for candidate in (c for each in found for c in each.candidates):
        known = best.get(candidate.id)
        if known is None or (candidate.score or 0.0) > (known.score or 0.0):
            best[candidate.id] = candidate
    return tuple(sorted(best.values(), key=_rank))


def _take_turns(found: Sequence[Found]) -> tuple[Candidate, ...]:
    """Return the best candidate of each search, then the second of each, and so on, each candidate once."""
    best = zip_longest(*(each.candidates[:_PROFILE_EACH] for each in found))
    return tuple({c.id: c for each in best for c in each if c is not None}.values())


def _weigh(found: Found, first: Found, weight: float) -> Found:
    """Return what a further search found, with scores that are at most the weight times the best of the first search.

    Else the scores of a short or a long query would outrank all that the question itself finds.
    """
    best, highest = (max((c.score or 0.0 for c in each.candidates), default=0.0) for each in (first, found))
    weight *= best / highest if highest > best > 0 else 1.0
    return replace(found, candidates=tuple(replace(c, score=(c.score or 0.0) * weight) for c in found.candidates))


def _split(
    candidates: Sequence[Candidate], keeps: Callable[[Candidate], bool]
) -> tuple[list[Candidate], list[Dropped]]:
    """Return the candidates to keep, and the others with the reason `unlikely`."""
    kept = [c for c in candidates if keeps(c)]
    return kept, [Dropped(candidate=c, reason="unlikely") for c in candidates if not keeps(c)]


def _since(plan: RoutePlan, config: RouterConfig) -> datetime | None:
    """Return the moment before which no memory can tell of the time that the question names; None for no limit."""
    return plan.period.since if config.filter_period and plan.period is not None and not plan.state else None


def phases_of(gathered: Gathered) -> list[PhaseTrace]:
    """Return the phases of all searches, in order."""
    return [phase for each in gathered.found for phase in each.recall.trace.phases]
