"""Readers of BEIR's SciFact (claims with their evidence) and NFCorpus (queries with graded judgements)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from meve.evaluation.datasets._assembly import build_set, read_passages
from meve.evaluation.datasets._row_reader import Row, index_rows, read_rows
from meve.evaluation.types import EvaluationSet, GoldSentence, Question
from meve.types import Passage

LABELS = ("SUPPORT", "CONTRADICT")
"""The labels of evidence for a claim of SciFact."""

NO_EVIDENCE = "NOT_ENOUGH_INFO"
"""The kind of a claim without evidence."""


def read_scifact(root: Path) -> EvaluationSet:
    """Return claims over abstracts, from `scifact/claims.jsonl` and `scifact/corpus.jsonl.gz`.

    Gold are the abstracts and sentences with evidence for the claim or against it, not abstracts that the claim merely
    cites. A claim without evidence isn't answerable.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    corpus = index_rows(read_rows(root / "scifact" / "corpus.jsonl.gz"))
    passages = read_passages(corpus.values())
    sentences_by_id = {key: _split_sentences(row, passages[key].text) for key, row in corpus.items()}
    return build_set("scifact", passages, _claims(root / "scifact" / "claims.jsonl", sentences_by_id))


def read_nfcorpus(root: Path) -> EvaluationSet:
    """Return queries over medical abstracts, from `nfcorpus/queries.jsonl`, `corpus.jsonl.gz` and `qrels.jsonl`.

    Judgements are 1 or 2. Queries without a judgement are left out.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    folder = root / "nfcorpus"
    passages = read_passages(read_rows(folder / "corpus.jsonl.gz"))
    queries = index_rows(read_rows(folder / "queries.jsonl"))
    grades = _read_grades(folder / "qrels.jsonl", queries, passages)
    questions = ((row, Question(id=key, text=row.text("text"), gold=grades[key])) for key, row in queries.items())
    return build_set("nfcorpus", passages, ((row, question) for row, question in questions if question.gold))


def _read_grades(
    file: Path, queries: Mapping[str, Row], passages: Mapping[str, Passage]
) -> defaultdict[str, dict[str, int]]:
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in read_rows(file):
        query, doc = row.text("query_id"), row.text("doc_id")
        if query not in queries:
            raise row.error(f"the query {query!r} isn't among the queries")
        if doc not in passages:
            raise row.error(f"query {query!r} names {doc!r}, which isn't among the passages")
        if doc in grades[query]:
            raise row.error(f"query {query!r} and {doc!r} are also judged on an earlier line")
        grades[query][doc] = row.number("relevance", least=1)
    return grades


def _claims(file: Path, sentences_by_id: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Row, Question]]:
    for key, row in index_rows(read_rows(file)).items():
        evidence = row.rows("evidence")
        labels = dict.fromkeys(_label(each) for each in evidence)
        sentences = dict.fromkeys(
            sentence for each in evidence for sentence in _evidence_sentences(each, sentences_by_id)
        )
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
        raise evidence.field_error("label", f"must be {' or '.join(LABELS)}, got {label!r}")
    return label


def _evidence_sentences(evidence: Row, sentences_by_id: Mapping[str, tuple[str, ...]]) -> Iterator[GoldSentence]:
    doc = evidence.text("doc_id")
    if doc not in sentences_by_id:
        raise evidence.field_error("doc_id", f"names {doc!r}, which isn't among the passages")
    for number in evidence.numbers("sentences"):
        if not 0 <= number < len(sentences_by_id[doc]):
            raise evidence.field_error(
                "sentences", f"names sentence {number} of {doc!r}, which has {len(sentences_by_id[doc])}"
            )
        yield GoldSentence(passage_id=doc, text=sentences_by_id[doc][number])


def _split_sentences(row: Row, text: str) -> tuple[str, ...]:
    starts = row.numbers("sent_starts")
    ends = (*starts, len(text))
    sentences = tuple(text[start:end].strip() for start, end in pairwise(ends))
    if min(ends) < 0 or not all(sentences):
        raise row.field_error(
            "sent_starts", f"must rise within the text's {len(text)} characters, without blank sentences"
        )
    return sentences
