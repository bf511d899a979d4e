"""The extraction experiment: which sentences of turns the rules keep as facts, and how often they see a secret in talk.

300 turns of LoCoMo and of sgd_memory, drawn at random, were labelled by one person. Kept is what tells something of the
speaker or of their people and things: what they are, have, like, want, plan or did. Left out are questions, commands,
reactions, general truths, and what means nothing without the turns before. Half of the turns were used to write the
rules. The package holds the ids of the turns and the places of the sentences; the texts are read from the data folder.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from meve.components._sentence_splitter import split_sentences
from meve.errors import EvaluationError
from meve.evaluation.datasets._assembly import packaged_file
from meve.evaluation.datasets._row_reader import Row, read_rows
from meve.evaluation.experiments.memory.environment import Environment
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.memory import PatternSecretDetector
from meve.memory._classify.fact_extraction import extract_statements
from meve.types import StageProgress

NAME, SECRETS = "extraction", "secrets in ordinary text"
PRECISION, RECALL, TAKEN = "kept sentences that are facts", "facts that are kept", "taken for secrets"
SETS = {"locomo": "LoCoMo", "sgd_memory": "sgd_memory"}
HALVES = {"dev": "half for tuning", "test": "half for the table"}
LABELLED, FACTS, OTHERS = "labelled turns", "users' facts", "all other turns of both sets"
LABELLED_SETS = ("locomo/conversations.jsonl", "train/sgd_memory.jsonl.gz")
"""The files with the texts of the labelled turns, in the data folder."""

Texts: TypeAlias = Mapping[tuple[str, str, str], str]
"""Turns by set, conversation and id."""


def run_extraction(environment: Environment, progress: StageProgress, *, labels: Path | None = None) -> list[Tally]:
    """Extract the facts of the labelled turns, and look for secrets in them and in other ordinary texts.

    Args:
        environment: its `data` is the folder with `locomo` and `train/sgd_memory.jsonl.gz`.
        progress: called with the steps that are done.
        labels: another file with rows {set, half, keep, conversation, turn} or {set, half, keep, group, sha256}; None
            for the package's.

    Raises:
        EvaluationError: there is no data folder.
        DatasetError: a file is absent, or of another format, or lacks a labelled turn.
    """
    if environment.data is None:
        raise EvaluationError("the experiment extraction needs --data DIR: the folder with locomo and train")
    progress(NAME, 0, 2)
    texts = {**_read_locomo(environment.data), **_read_sgd(environment.data)}
    tally, secrets = Tally(NAME, environment.seed), Tally(SECRETS, environment.seed)
    detector = PatternSecretDetector()
    labelled = set()
    with packaged_file("memory_extraction.jsonl", labels) as file:
        for row in read_rows(file):
            key = _key(row)
            if key not in texts:
                raise row.error(f"the data has no turn {key[2]!r} in {key[1]!r} of {key[0]}")
            labelled.add(key)
            _compare(texts[key], row, tally)
            secrets.add(TAKEN, LABELLED, bool(detector.find_secret(texts[key])))
    progress(NAME, 1, 2)
    with packaged_file("memory_facts.jsonl", None) as file:
        for row in read_rows(file):
            secrets.add(TAKEN, FACTS, bool(detector.find_secret(row.text("text"))))
    for key, text in texts.items():
        if key not in labelled:
            secrets.add(TAKEN, OTHERS, bool(detector.find_secret(text)))
    return [tally, secrets]


def _compare(text: str, label: Row, tally: Tally) -> None:
    """Count the sentences that the rules keep, whole or their beginning, and those that are labelled."""
    system = f"{SETS[label.text('set')]}, {HALVES[label.text('half')]}"
    facts = {text[begin:end] for begin, end in label.values["keep"]}
    kept = extract_statements(text)
    for sentence in (each for line in text.splitlines() for each in split_sentences(line)):
        is_fact = sentence in facts
        is_kept = any(sentence in each or each.rstrip(".") in sentence for each in kept)
        if is_kept:
            tally.add(system, PRECISION, is_fact)
        if is_fact:
            tally.add(system, RECALL, is_kept)


def _key(label: Row) -> tuple[str, str, str]:
    if label.text("set") == "locomo":
        return "locomo", label.text("conversation"), label.text("turn")
    return "sgd_memory", label.text("group"), label.text("sha256")


def _read_locomo(data: Path) -> Texts:
    return {
        ("locomo", row.text("conversation_id"), turn.text("dia_id")): turn.text("text", blank=True)
        for row in read_rows(data / LABELLED_SETS[0])
        for session in row.rows("sessions")
        for turn in session.rows("turns")
    }


def _read_sgd(data: Path) -> Texts:
    rows = list(read_rows(data / LABELLED_SETS[1]))
    texts = [(row.text("group"), text) for row in rows for text in (row.text("positive"), *row.texts("negatives"))]
    return {("sgd_memory", group, hashlib.sha256(text.encode()).hexdigest()[:16]): text for group, text in texts}
