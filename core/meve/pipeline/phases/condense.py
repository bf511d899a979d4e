"""Reduce passages to their title and evidence sentences before packing (phase 5, with `packing="sentences"`)."""

from collections.abc import Callable, Container, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial

from meve._tables import find_headers
from meve.pipeline.phases.verify import score_candidates
from meve.ports import Scorer
from meve.types import Candidate, FloatArray, Passage, Query, TextSpans

GAP = "…"
"""The mark of omitted sentences, within a passage and at its ends."""

RATED_SENTENCE, READ_SENTENCE = 0.3, 0.5
"""The default least probability of a sentence: rated while its passage is read, or read by itself."""

SplitSentences = Callable[[str], Sequence[str]]
"""A function that returns the sentences of a text, in order."""
ScoreSentences = Callable[[Query, Sequence[Candidate], Sequence[TextSpans]], list[FloatArray]]
"""`VerifierScorer.score_sentences`."""
SharesCode = Callable[[str, str], bool]
"""A function that tells whether a question and a text share a code of letters and digits."""


def condense(
    queries: Sequence[tuple[Query, str]],
    candidates: Sequence[Candidate],
    scorer: Scorer,
    split: SplitSentences,
    threshold: float,
    *,
    shares_code: SharesCode | None = None,
) -> list[Candidate]:
    """Reduce each candidate to the sentences that reach the threshold, unless it was shortened before.

    In a verified candidate, the threshold is a share of the best sentence's score, since something in it answers,
    perhaps in several sentences. If its best sentence is below the threshold, it stays whole. Another candidate keeps
    its best sentence in any case. A row of a table with a code of the question is the best one. A row keeps its
    header, which doesn't count by itself. A question among the sentences keeps the sentence after it.

    Args:
        queries: by id, the question (empty id) and the question extended by each evidence passage (the passage's id). A
            query doesn't score the sentences of its own passage. The best score of a sentence counts.
        candidates: the candidates to pack.
        scorer: the scorer of phase 2. One that rates the sentences of the passages it reads is asked for the ratings of
            these readings. Others read each sentence below the title of its passage.
        split: splits a text into sentences.
        threshold: the least score in [0, 1] of a sentence; of a verified candidate, times the score of its best one.
        shares_code: tells whether a text has a code of the question, such as E3; None if that isn't known.
    """
    parts = {c.id: [s for s in split(c.passage.text) if s.strip()] for c in candidates if c.sentences is None}
    rate: ScoreSentences | None = None
    if getattr(scorer, "scores_sentences", False):
        rate = getattr(scorer, "score_sentences")  # noqa: B009 - not part of `Scorer`
    best: dict[str, float] = {}
    for query, evidence in queries:
        chosen = [c for c in candidates if len(parts.get(c.id, ())) > 1 and c.id != evidence]
        if rate is not None:
            read = [c for c in chosen if (evidence in c.read_with if evidence else scorer.name in c.scores)]
            scores = _rate(query, read, [parts[c.id] for c in read], rate)
        else:
            scores = _read_again(query, chosen, [parts[c.id] for c in chosen], scorer)
        for key, score in scores:
            best[key] = max(score, best.get(key, 0.0))
    asked = partial(shares_code, queries[0][0].text) if shares_code else None
    return [_reduce(c, parts.get(c.id, ()), best, threshold, asked) for c in candidates]


def _rate(
    query: Query, candidates: Sequence[Candidate], parts: Sequence[Sequence[str]], score: ScoreSentences
) -> Iterator[tuple[str, float]]:
    """Yield the key and the score of each sentence, from the reading of its passage."""
    spans = [find_spans(c.passage, sentences) for c, sentences in zip(candidates, parts, strict=True)]
    for candidate, scores in zip(candidates, score(query, candidates, spans), strict=True):
        yield from ((_key(candidate, n), score) for n, score in enumerate(scores.tolist()))


def _read_again(
    query: Query, candidates: Sequence[Candidate], parts: Sequence[Sequence[str]], scorer: Scorer
) -> Iterator[tuple[str, float]]:
    """Yield the key and the score of each sentence, read below the title of its passage."""
    pieces = [
        Candidate(passage=Passage(id=_key(c, n), title=c.passage.title, text=text), origin="sentence")
        for c, sentences in zip(candidates, parts, strict=True)
        for n, text in enumerate(_with_headers(sentences))
    ]
    yield from ((piece.id, piece.score or 0.0) for piece in score_candidates(query, pieces, scorer))


def _with_headers(sentences: Sequence[str]) -> list[str]:
    headers = find_headers(sentences)
    return [f"{sentences[headers[n]]}\n{text}" if n in headers else text for n, text in enumerate(sentences)]


def find_spans(passage: Passage, sentences: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of each sentence in the passage's content; an empty span if it isn't there."""
    spans, at = [], max(passage.content.rfind(passage.text.strip()), 0)  # metadata may stand before or behind it
    for sentence in sentences:
        start = passage.content.find(sentence, at)
        at = start + len(sentence) if start >= 0 else at
        spans.append((start, at) if start >= 0 else (at, at))
    return spans


def put_named_first(
    scores: Sequence[float], texts: Sequence[str], rows: Container[int], is_named: Callable[[str], bool]
) -> list[float]:
    """Return the scores; those of named rows of tables, given by their places, are just above the best of the others.

    A verifier hardly tells the rows of a table apart by a code in them.

    >>> put_named_first([0.25, 0.25, 0.125], ["| Code |", "| E5 |", "| E7 |"], {1, 2}, lambda text: "E5" in text)
    [0.25, 0.2501, 0.125]
    """
    best = max(scores, default=0.0) + 1e-4
    named = (n in rows and is_named(text) for n, text in enumerate(texts))
    return [best if is_first else score for score, is_first in zip(scores, named, strict=True)]


def _reduce(
    candidate: Candidate,
    sentences: Sequence[str],
    scores: dict[str, float],
    threshold: float,
    is_named: Callable[[str], bool] | None,
) -> Candidate:
    if len(sentences) < 2:
        return candidate
    headers = find_headers(sentences)
    own = [scores.get(_key(candidate, n), 0.0) for n in range(len(sentences))]
    own = [0.0 if n in headers.values() else score for n, score in enumerate(own)]
    if is_named is not None:
        own = put_named_first(own, sentences, headers, is_named)
    best = max(own)
    if candidate.verified and best < threshold:
        return candidate
    least = threshold * best if candidate.verified else threshold
    kept = [n for n, score in enumerate(own) if score >= least] or [own.index(best)]
    answers = [n + 1 for n in kept if sentences[n].endswith("?") and n + 1 < len(sentences)]
    kept = sorted({*kept, *answers, *(headers[n] for n in kept if n in headers)})
    if len(kept) == len(sentences):
        return candidate
    passage = candidate.passage.with_text(_join(sentences, kept, {*headers, *headers.values()}))
    return replace(candidate, passage=passage, tokens=None, sentences=tuple(kept))


def _key(candidate: Candidate, n: int) -> str:
    return f"{candidate.id}\0{n}"


def _join(sentences: Sequence[str], kept: Sequence[int], rows: Set[int]) -> str:
    """Return the kept sentences with marks of omitted ones; what belongs to a table stands on lines of its own."""
    blocks: list[tuple[str, bool]] = []
    before = -1
    for n in kept:
        if n > before + 1:
            blocks.append((GAP, False))
        blocks.append((sentences[n].strip(), n in rows))
        before = n
    if before < len(sentences) - 1:
        blocks.append((GAP, False))
    return join_blocks(blocks)


def join_blocks(blocks: Sequence[tuple[str, bool]]) -> str:
    """Join texts by a space, or by a line break where one of two neighbours belongs to a table."""
    joined, in_table = blocks[0]
    for text, is_table in blocks[1:]:
        joined += ("\n" if is_table or in_table else " ") + text
        in_table = is_table
    return joined
