"""The questions of LongBench whose answer stands in a document, which is cut into the memories of a user of its own.

Which sentences the answer needs isn't marked, so a memory is evidence if the answer stands in it, and one suffices.
Tasks without such an answer (summaries, few-shot classification, counting, code), yes and no, and answers that stand
in more than a tenth of the memories are left out.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from meve.components._sentence_splitter import split_sentences
from meve.evaluation.datasets._row_reader import Row, read_rows
from meve.evaluation.experiments.memory.talks import ConversationTurn
from meve.evaluation.experiments.routing.cases import RoutingCase, RoutingSet

FILE = Path("longbench_mini") / "tasks.jsonl.gz"
CHARACTERS = 600
"""The most characters of a memory, unless a sentence alone has more."""
COMMON = 0.1
"""The share of a user's memories from which an answer is too common to tell evidence."""
_CONTEXTS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("hotpotqa", "2wikimqa", "musique", "qasper"), ("given passages.\n", "\nAnswer the question based on")
    ),
    "multifieldqa_en": ("answer briefly.\n", "\nNow, answer the following question"),
    "narrativeqa": ("Story: ", "\nNow, answer the question based on"),
    "triviaqa": ("\nPassage:\n", "\nQuestion:"),
}
"""The text before and after the documents in each task's prompts. If it stands there several times, the last counts."""
_DOCUMENT = re.compile(r"(?:^|\n)Passage \d+:\n")
_AT = datetime(2026, 1, 5, 9, tzinfo=UTC)


def read_longbench_cases(data: Path) -> RoutingSet:
    """Return the questions, each about the memories of a user of its own.

    Raises:
        DatasetError: the set is absent, truncated or of another format.
    """
    turns: dict[str, list[ConversationTurn]] = {}
    cases = []
    for row in read_rows(data / FILE):
        task = row.text("task")
        if task not in _CONTEXTS:
            continue
        user = row.text("id")
        own = [
            ConversationTurn(id=f"{user}-{n}", session=str(document), text=text, at=_AT, source="doc")
            for n, (document, text) in enumerate(_cut(_context(row, task)))
        ]
        answers = tuple(answer for answer in row.texts("gold") if _words(answer) not in ("yes", "no", ""))
        evidence = frozenset(turn.id for turn in own if any(_holds(turn.text, answer) for answer in answers))
        if evidence and len(evidence) <= COMMON * len(own):
            turns[user] = own
            cases.append(
                RoutingCase(
                    id=user, user=user, unit=user, half="table", type=task, text=_question(row), answers=answers,
                    evidence=evidence, one_suffices=True, at=_AT,
                )
            )  # fmt: skip
    return RoutingSet(name="longbench", turns=turns, cases=tuple(cases))


def _context(row: Row, task: str) -> str:
    before, after = _CONTEXTS[task]
    prompt = row.text("prompt")
    end = prompt.rfind(after)
    begin = prompt.rfind(before, 0, end) if task == "triviaqa" else prompt.find(before)
    if begin < 0 or end < begin:
        raise row.error(f"the prompt must hold {before!r} and {after!r}")
    return prompt[begin + len(before) : end]


def _question(row: Row) -> str:
    prompt = row.text("prompt").rstrip()
    _, before, question = prompt.removesuffix("Answer:").rpartition("Question:")
    if not (prompt.endswith("Answer:") and before and question.strip()):
        raise row.error("the prompt must end with a question")
    return question.strip()


def _cut(context: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the document and the text of each memory; memories of several documents name theirs."""
    documents = [document for document in _DOCUMENT.split(context) if document.strip()]
    for number, document in enumerate(documents):
        title = ""
        if len(documents) > 1:
            title, _, document = document.strip().partition("\n")
        for paragraph in re.split(r"\n\s*\n", document):
            for text in _join_sentences(" ".join(paragraph.split())):
                yield number, f"{title}: {text}" if title else text


def _join_sentences(paragraph: str) -> Iterator[str]:
    joined = ""
    for sentence in filter(None, map(str.strip, split_sentences(paragraph))):
        if joined and len(joined) + len(sentence) >= CHARACTERS:
            yield joined
            joined = ""
        joined = f"{joined} {sentence}".strip()
    if joined:
        yield joined


def _holds(text: str, answer: str) -> bool:
    return f" {_words(answer)} " in f" {_words(text)} "


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
