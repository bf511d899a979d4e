"""Define the trace of a retrieval: each phase, each candidate, each reason."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from html import escape
from typing import Any, Literal, TypeAlias

from meve.errors import ConfigurationError
from meve.types import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTrace:
    """The record of one phase."""

    name: str
    """`retrieve`, `verify`, `follow` (one per further hop), `fallback`, `shorten`, `prioritize`, `condense`, `budget`,
    `fill`, `abstain`."""
    ms: float
    received: int
    """The number of candidates before the phase."""
    returned: int
    """The number of candidates after the phase."""
    skipped: str = ""
    """Why the phase didn't run; empty if it did."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The thresholds, limits and models of the phase."""


Observer: TypeAlias = Callable[[str, PhaseTrace | None], None]
"""A function called with a phase's name and None when the phase begins, and with its record when it ends or is
skipped."""


@dataclass(frozen=True, kw_only=True)  # no slots, so that `make_frozen` can make it
class CandidateTrace:
    """The fate of one candidate."""

    id: str
    origin: Origin
    scores: Mapping[str, float]
    verified: bool
    fate: Literal["kept", "dropped"]
    phase: str
    """The phase that kept or dropped the candidate."""
    reason: str
    """Why it was dropped; for a kept candidate `verified`, `fallback` or `unverified`."""
    tokens: int | None
    rank: int | None
    """The position in the context, from 1; None if dropped."""
    sentences: tuple[int, ...] | None = None
    """The indices of its sentences in the context, from 0; of a shortened passage, of its pieces. None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The record of one retrieval: phases, candidates and reasons."""

    mode: str
    embedder: str
    verifier: str
    tokens: str
    """The name of the tokenizer that counted the budget."""
    ms: float
    """The milliseconds of the whole retrieval, the embedding of the query included."""
    embed_ms: float
    """The milliseconds of embedding the query."""
    phases: tuple[PhaseTrace, ...]
    sufficiency: Mapping[str, Any]
    """The estimator's name, its estimate and the threshold, if there is an estimator. `reason` says in a sentence why
    the context isn't sufficient. `missing` lists the numbers,
    dates and names of the query that no passage of the context holds, by kind, start and end in the query, in
    characters; they don't change the estimate."""
    candidates: tuple[CandidateTrace, ...]
    """The kept ones in the order of the context, then the dropped ones by phase."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data: ids and scores, but no text of queries or passages."""
        data = {name: getattr(self, name) for name in _TRACE}
        data["phases"] = tuple(asdict(phase) for phase in self.phases)
        data["sufficiency"] = dict(self.sufficiency)
        data["candidates"] = tuple(  # asdict would copy each number of each
            {name: getattr(c, name) for name in _CANDIDATE} | {"scores": dict(c.scores)} for c in self.candidates
        )
        return data

    def to_svg(self, *, labels: Mapping[str, str] | None = None, max_candidates: int = 40) -> str:
        """Return a picture: a row for each candidate, a column for each phase, and where and why it was dropped.

        It follows the reader's light or dark colours, and loads nothing.

        Args:
            labels: what to show in place of ids, by id, such as titles.
            max_candidates: the largest number of rows, at least 1; of more candidates, those dropped first are left
                out.

        Raises:
            ConfigurationError: `max_candidates` is below 1.
        """
        from meve.pipeline._trace_picture import draw_trace

        if max_candidates < 1:
            raise ConfigurationError(f"max_candidates must be at least 1, got {max_candidates!r}")
        return draw_trace(self, labels or {}, max_candidates)

    def to_html(self, *, labels: Mapping[str, str] | None = None, max_candidates: int = 40) -> str:
        """Return the picture of `to_svg` as HTML, and why the context isn't sufficient."""
        reason = str(self.sufficiency.get("reason") or "")
        note = f"<p>Not sufficient: {escape(reason)}</p>" if reason else ""
        return f"<div>{self.to_svg(labels=labels, max_candidates=max_candidates)}{note}</div>"

    def _repr_html_(self) -> str:
        """Show the picture in a notebook."""
        return self.to_html()


_TRACE, _CANDIDATE = (tuple(field.name for field in fields(kind)) for kind in (Trace, CandidateTrace))
