"""Draw a trace as SVG: a row for each candidate, a column for each phase, and where and why a candidate was dropped."""

import re
from collections.abc import Iterator, Mapping
from html import escape

from meve.pipeline.trace import CandidateTrace, PhaseTrace, Trace

_LABEL, _SCORE, _REASON = 250, 90, 200
"""The widths of the columns of labels, scores and reasons, in pixels."""
_HEADER, _ROW, _MARGIN, _WIDTH = 80, 22, 12, 1000
_LONGEST = 36
"""The largest number of characters of a label or a reason."""
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
_STYLE = """
.meve-trace { --ink: #1f2328; --dim: #59636e; --line: #d1d9e0; --yes: #1a7f37; --maybe: #9a6700; --no: #818b98;
  font: 12px system-ui, sans-serif; color: var(--ink) }
@media (prefers-color-scheme: dark) { .meve-trace { --ink: #f0f6fc; --dim: #9198a1; --line: #3d444d;
  --yes: #3fb950; --maybe: #d29922; --no: #656c76 } }
.meve-trace text { fill: var(--ink) } .meve-trace .dim { fill: var(--dim) } .meve-trace .phase { font-weight: 600 }
.meve-trace line { stroke: var(--line) } .meve-trace .tick { stroke: var(--ink) }
.meve-trace .path { stroke-width: 2 } .meve-trace .bar { fill: var(--no) }
.meve-trace .yes .path { stroke: var(--yes) } .meve-trace .yes circle, .meve-trace .yes .bar { fill: var(--yes) }
.meve-trace .maybe .path { stroke: var(--maybe); stroke-dasharray: 5 3 }
.meve-trace .maybe circle, .meve-trace .maybe .bar { fill: var(--maybe) }
.meve-trace .no .path, .meve-trace .cross { stroke: var(--no); stroke-width: 2 }
.meve-trace circle + text { fill: #fff; font-weight: 600 }
"""


def draw_trace(trace: Trace, labels: Mapping[str, str], max_candidates: int) -> str:
    """Return the picture; see `Trace.to_svg`."""
    phases = [phase for phase in trace.phases if not phase.skipped]
    rows = _in_order(trace, phases)
    shown = rows[:max_candidates]
    height = _HEADER + _ROW * (len(shown) + (len(shown) < len(rows))) + _MARGIN
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="meve-trace" viewBox="0 0 {_WIDTH} {height}" '
            f'width="100%" style="max-width: {_WIDTH}px" role="img" aria-label="{escape(describe(trace))}">',
            f"<style>{_STYLE}</style>",
            *_draw_header(trace, phases, height),
            *(part for n, candidate in enumerate(shown) for part in _draw_row(candidate, n, trace, phases, labels)),
            *_draw_rest(len(rows) - len(shown), len(shown)),
            "</svg>",
        ]
    )


def describe(trace: Trace) -> str:
    """Return the numbers of candidates and milliseconds, and the estimate of sufficiency, in one line."""
    kept = sum(candidate.fate == "kept" for candidate in trace.candidates)
    text = f"{len(trace.candidates)} candidates, {kept} kept, {trace.ms:.0f} ms"
    estimate, threshold = trace.sufficiency.get("estimate"), trace.sufficiency.get("threshold")
    if estimate is None or threshold is None:
        return text
    verdict = "not sufficient" if trace.sufficiency.get("reason") else "sufficient"
    return f"{text}; sufficiency {estimate:.2f}, threshold {threshold:.2f}: {verdict}"


def _in_order(trace: Trace, phases: list[PhaseTrace]) -> list[CandidateTrace]:
    """Return the candidates: the kept ones by rank, then those that were dropped late before those dropped early."""
    places = {phase.name: n for n, phase in enumerate(phases)}
    kept = [candidate for candidate in trace.candidates if candidate.fate == "kept"]
    dropped = [candidate for candidate in trace.candidates if candidate.fate != "kept"]
    return [*kept, *sorted(dropped, key=lambda c: (-places.get(c.phase, 0), -c.scores.get("verifier", -1.0)))]


def _end_of(n: int, phases: list[PhaseTrace]) -> float:
    """Return where the column of the phase ends, in pixels from the left."""
    width = (_WIDTH - 2 * _MARGIN - _LABEL - _SCORE - _REASON) / max(1, len(phases))
    return _MARGIN + _LABEL + _SCORE + width * (n + 1)


def _draw_header(trace: Trace, phases: list[PhaseTrace], height: int) -> Iterator[str]:
    yield f'<text x="{_MARGIN}" y="20">{escape(describe(trace))}</text>'
    yield f'<text class="dim" x="{_MARGIN + _LABEL}" y="42">score</text>'
    for n, phase in enumerate(phases):
        x = _end_of(n, phases)
        counts = f"{phase.received} → {phase.returned}" if phase.received else f"{phase.returned}"
        yield f'<text class="phase" x="{x:.0f}" y="42" text-anchor="middle">{escape(phase.name)}</text>'
        for y, text in ((57, counts), (72, f"{phase.ms:.0f} ms")):
            yield f'<text class="dim" x="{x:.0f}" y="{y}" text-anchor="middle">{text}</text>'
        yield f'<line x1="{x:.0f}" y1="{_HEADER}" x2="{x:.0f}" y2="{height - _MARGIN}"/>'


def _draw_row(
    candidate: CandidateTrace, n: int, trace: Trace, phases: list[PhaseTrace], labels: Mapping[str, str]
) -> Iterator[str]:
    y = _HEADER + _ROW * n + _ROW // 2
    kept = candidate.fate == "kept"
    kind = ("yes" if candidate.verified else "maybe") if kept else "no"
    details = f"{candidate.id}: {_reason(candidate, labels)}; " + ", ".join(
        f"{name} {score:.3f}" for name, score in candidate.scores.items()
    )
    yield f'<g class="{kind}"><title>{_clean(details)}</title>'
    yield f'<text x="{_MARGIN}" y="{y + 4}">{_shorten(labels.get(candidate.id, candidate.id))}</text>'
    yield from _draw_score(candidate, y, trace)
    names = [phase.name for phase in phases]
    last = len(phases) - 1 if kept or candidate.phase not in names else names.index(candidate.phase)
    x = _end_of(last, phases)
    yield f'<line class="path" x1="{_MARGIN + _LABEL + _SCORE}" y1="{y}" x2="{x:.0f}" y2="{y}"/>'
    if kept:
        yield f'<circle cx="{x:.0f}" cy="{y}" r="9"/><text x="{x:.0f}" y="{y + 4}" text-anchor="middle">'
        yield f"{candidate.rank}</text>"
    else:
        for sign in (1, -1):
            yield f'<line class="cross" x1="{x - 4:.0f}" y1="{y - 4 * sign}" x2="{x + 4:.0f}" y2="{y + 4 * sign}"/>'
    yield f'<text class="dim" x="{x + 14:.0f}" y="{y + 4}">{_shorten(_reason(candidate, labels))}</text></g>'


def _draw_score(candidate: CandidateTrace, y: int, trace: Trace) -> Iterator[str]:
    """Draw the verifier's score as a bar with a tick at the threshold; nothing for a candidate that it didn't read."""
    score = candidate.scores.get("verifier")
    if score is None:
        return
    x, width = _MARGIN + _LABEL, _SCORE - 45
    yield f'<text class="dim" x="{x}" y="{y + 4}">{score:.2f}</text>'
    filled = width * min(1.0, max(0.0, score))
    yield f'<rect class="bar" x="{x + 30}" y="{y - 3}" width="{filled:.1f}" height="6" rx="1"/>'
    threshold = next((p.settings.get("threshold") for p in trace.phases if p.name == "verify"), None)
    if isinstance(threshold, int | float):
        at = x + 30 + width * min(1.0, max(0.0, threshold))
        yield f'<line class="tick" x1="{at:.1f}" y1="{y - 6}" x2="{at:.1f}" y2="{y + 6}"/>'


def _draw_rest(count: int, n: int) -> Iterator[str]:
    if count:
        yield f'<text class="dim" x="{_MARGIN}" y="{_HEADER + _ROW * n + 15}">and {count} more, dropped earlier</text>'


def _reason(candidate: CandidateTrace, labels: Mapping[str, str]) -> str:
    name, _, other = candidate.reason.partition(":")  # as in "duplicate_of:p0000003"
    return f"{name.replace('_', ' ')} {labels.get(other, other)}".rstrip()


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return _clean(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def _clean(text: str) -> str:
    return escape(_UNPRINTABLE.sub(" ", text))
