"""Search in scientific and medical texts: SciFact's claims with their evidence, and NFCorpus with graded judgements."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from meve.evaluation.datasets._assembly import assemble, passages
from meve.evaluation.datasets._rows import Row, read, unique
from meve.evaluation.types import EvaluationSet, GoldSentence, Question
from meve.types import Passage

LABELS = ("SUPPORT", "CONTRADICT")
"""What evidence may do to a claim of SciFact."""

NO_EVIDENCE = "NOT_ENOUGH_INFO"
"""The kind of a claim that no abstract supports or contradicts."""


def scifact(root: Path) -> EvaluationSet:
    """Claims over abstracts: `scifact/claims.jsonl` and `scifact/corpus.jsonl.gz`.

    Gold are the abstracts with evidence, for the claim or against it, and its sentences are cut out of them; abstracts
    that a claim merely cites are not gold. A claim without evidence isn't answerable.

    Raises:
        DatasetError: the set is absent, cut short, of another format, or at odds with itself.
    """
    corpus = unique(read(root / "scifact" / "corpus.jsonl.gz"))
    among = passages(corpus.values())
    cut = {key: _cut(row, among[key].text) for key, row in corpus.items()}
    return assemble("scifact", among, _claims(root / "scifact" / "claims.jsonl", cut))


def nfcorpus(root: Path) -> EvaluationSet:
    """Queries over medical abstracts, judged 1 or 2: `nfcorpus/queries.jsonl`, `corpus.jsonl.gz` and `qrels.jsonl`.

    A query without a judgement is no question.

    Raises:
        DatasetError: the set is absent, cut short, of another format, or at odds with itself.
    """
    folder = root / "nfcorpus"
    among = passages(read(folder / "corpus.jsonl.gz"))
    queries = unique(read(folder / "queries.jsonl"))
    judged = _judged(folder / "qrels.jsonl", queries, among)
    asked = ((row, Question(id=key, text=row.text("text"), gold=judged[key])) for key, row in queries.items())
    return assemble("nfcorpus", among, ((row, question) for row, question in asked if question.gold))


def _judged(file: Path, queries: Mapping[str, Row], among: Mapping[str, Passage]) -> defaultdict[str, dict[str, int]]:
    judged: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in read(file):
        query, doc = row.text("query_id"), row.text("doc_id")
        if query not in queries:
            raise row.error(f"the query {query!r} isn't among the queries")
        if doc not in among:
            raise row.error(f"query {query!r} names {doc!r}, which isn't among the passages")
        if doc in judged[query]:
            raise row.error(f"query {query!r} and {doc!r} are judged on an earlier line too")
        judged[query][doc] = row.number("relevance", least=1)
    return judged


def _claims(file: Path, cut: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Row, Question]]:
    for key, row in unique(read(file)).items():
        evidence = row.rows("evidence")
        labels = dict.fromkeys(_label(each) for each in evidence)
        sentences = dict.fromkeys(sentence for each in evidence for sentence in _sentences(each, cut))
        yield (
            row,
            Question(
                id=key,
                text=row.text("claim"),
                gold={each.text("doc_id"): 1 for each in evidence},
                sentences=tuple(sentences),
                answerable=bool(evidence),
                kind=" and ".join(labels) or NO_EVIDENCE,
            ),
        )


def _label(evidence: Row) -> str:
    label = evidence.text("label")
    if label not in LABELS:
        raise evidence.wrong("label", f"holds {label!r}: {' or '.join(LABELS)} is wanted")
    return label


def _sentences(evidence: Row, cut: Mapping[str, tuple[str, ...]]) -> Iterator[GoldSentence]:
    doc = evidence.text("doc_id")
    if doc not in cut:
        raise evidence.wrong("doc_id", f"names {doc!r}, which isn't among the passages")
    for number in evidence.numbers("sentences"):
        if not 0 <= number < len(cut[doc]):
            raise evidence.wrong("sentences", f"names sentence {number} of {doc!r}, which has {len(cut[doc])}")
        yield GoldSentence(passage_id=doc, text=cut[doc][number])


def _cut(row: Row, text: str) -> tuple[str, ...]:
    """An abstract's sentences."""
    starts = row.numbers("sent_starts")
    bounds = (*starts, len(text))
    sentences = tuple(text[start:end].strip() for start, end in pairwise(bounds))
    if min(bounds) < 0 or not all(sentences):
        raise row.wrong("sent_starts", f"doesn't rise within the text's {len(text)} characters, or leaves one blank")
    return sentences
