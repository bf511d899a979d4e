"""Dialogues with questions about them: passages told among chit-chat, and conversations with their evidence."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from meve.dialogue import Turn
from meve.errors import DatasetError
from meve.evaluation.datasets._rows import Row, read, unique
from meve.evaluation.run import sample
from meve.evaluation.types import GoldSentence, Question

SPEAKERS = ("Ann", "Ben")
"""Who tells passages and talks in between."""
WIKI, CHAT, LOCOMO = "2wiki", "irc", "locomo"
ADVERSARIAL = 5
"""LoCoMo's category of questions without a true answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A question about a dialogue; its key facts are the texts of `question.sentences`."""

    question: Question
    dialogue: str
    """Names the dialogue: several questions may be about one."""
    turns: tuple[Turn, ...]
    chat: int
    """How many of the turns are chit-chat that was put in; 0 in conversations that are as they were."""


def wiki_told(
    root: Path, *, questions: int | None, seed: int, chat: float, aside: int = 0,
    quiet: Callable[[Sequence[str]], Sequence[bool]] | None = None, name: str = "",
) -> list[Told]:  # fmt: skip
    """2WikiMultihopQA's questions, each with its ten paragraphs told sentence by sentence, among chit-chat.

    A paragraph is told in a row, a turn a sentence, as it stands there; between two, before the first and after the
    last people talk of something else: stretches of a chat room, in their order, without the names that they begin
    with.

    Args:
        root: the folder that holds a folder for each set; `2wiki` and `irc` are read.
        questions: how many, drawn with the seed; None for all.
        seed: of the draws.
        chat: the least share of chit-chat among the turns, from 0 up to, but not including, 1.
        aside: how many of those drawn first are passed over: to choose settings on others than are evaluated.
        quiet: of each text of the chat room whether it may serve; None for all of them.
        name: stands before the dialogues' names.

    Raises:
        DatasetError: a set that is absent, cut short, of another format, or too short for so much chit-chat.
    """
    rows = unique(read(root / WIKI / "questions.jsonl"))
    passages = unique(read(root / WIKI / "passages.jsonl.gz"))
    talk = small_talk(root)
    if quiet is not None:
        talk = [text for text, serves in zip(talk, quiet(talk), strict=True) if serves]
    asked = sample([_wiki_question(row) for row in rows.values()], None, seed)[aside:]
    return [
        replace(told, dialogue=name + told.dialogue)
        for question in asked[:questions]
        for told in [_told(question, rows[question.id], passages, talk, Random(f"{seed} {question.id}"), chat)]
    ]


def small_talk(root: Path) -> list[str]:
    """What people said in a chat room, in order; neither notices nor the names of those whom they address."""
    rows = [row for row in read(root / CHAT / "messages.jsonl.gz") if not row.flag("system")]
    names = {row.text("speaker").casefold() for row in rows}
    said = []
    for row in rows:
        first, _, rest = row.text("text", blank=True).strip().partition(" ")
        text = rest if first.rstrip(":,").casefold() in names else f"{first} {rest}"
        if text.strip():
            said.append(text.strip())
    return said


def _wiki_question(row: Row) -> Question:
    gold = [(each.text("passage_id"), each.text("text")) for each in row.rows("gold_sentences")]
    return Question(
        id=row.text("id"),
        text=row.text("question"),
        gold={passage: 1 for passage, _ in gold},
        sentences=tuple(GoldSentence(passage_id=passage, text=text) for passage, text in gold),
        answers=(row.text("answer"),),
        kind=row.text("type"),
    )


def _told(
    question: Question, row: Row, passages: Mapping[str, Row], talk: Sequence[str], rng: Random, share: float
) -> Told:
    told = [_sentences(passages[i]) for i in row.texts("context_passage_ids") if i in passages]
    rng.shuffle(told)
    facts = sum(map(len, told))
    chat = -(-int(facts * share * 1_000) // int((1 - share) * 1_000)) if share else 0
    if chat > len(talk):
        raise DatasetError(
            f"{CHAT} has {len(talk):,} messages that serve, and {chat:,} are needed for a share of {share:.3g} beside "
            f"the {facts} sentences of question {question.id!r}: ask for less chit-chat"
        )
    gaps = [chat // (len(told) + 1) + (n < chat % (len(told) + 1)) for n in range(len(told) + 1)]
    at = rng.randrange(max(1, len(talk) - chat))
    texts: list[str] = []
    for gap, sentences in zip(gaps, [*told, []], strict=True):
        texts += [*talk[at : at + gap], *sentences]
        at += gap
    turns = tuple(Turn(speaker=SPEAKERS[n % 2], text=text) for n, text in enumerate(texts))
    return Told(question=question, dialogue=question.id, turns=turns, chat=len(turns) - facts)


def _sentences(row: Row) -> list[str]:
    text, starts = row.text("text"), [*row.numbers("sent_starts"), None]
    cut = [text[begin:end].strip() for begin, end in pairwise(starts)]
    return [sentence for sentence in cut if sentence]


def locomo_told(root: Path, *, questions: int | None, seed: int) -> list[Told]:
    """LoCoMo's questions that have an answer and evidence, each about a whole conversation of many sessions.

    The key facts are the turns that the set names as evidence, corrected where its audit corrects them. What pictures
    show is left out.

    Args:
        root: the folder that holds a folder for each set.
        questions: how many, drawn with the seed; None for all.
        seed: of the draw.

    Raises:
        DatasetError: the set is absent, cut short, or of another format.
    """
    talks = {
        key: dict(_said(row))
        for key, row in unique(read(root / LOCOMO / "conversations.jsonl"), "conversation_id").items()
    }
    found = []
    for row in unique(read(root / LOCOMO / "questions.jsonl")).values():
        turns = talks[row.text("conversation_id")]
        audit = row.values.get("audit") or {}
        evidence = audit.get("correct_evidence") or row.values.get("evidence") or []
        facts = [(i, turns[i].text) for i in evidence if i in turns]
        answer = audit.get("correct_answer") or row.values.get("answer")
        if row.number("category", 1) != ADVERSARIAL and facts and len(facts) == len(evidence) and answer is not None:
            sentences = tuple(GoldSentence(passage_id=i, text=text) for i, text in facts)
            question = Question(
                id=row.text("id"), text=row.text("question"), gold=dict.fromkeys([i for i, _ in facts], 1),
                sentences=sentences, answers=(str(answer),), kind=row.text("category_name"),
            )  # fmt: skip
            told = tuple(turns.values())
            found.append(Told(question=question, dialogue=row.text("conversation_id"), turns=told, chat=0))
    order = [q.id for q in sample([t.question for t in found], questions, seed)]
    by_id = {told.question.id: told for told in found}
    return [by_id[i] for i in order]


def _said(row: Row) -> Iterator[tuple[str, Turn]]:
    for session in row.rows("sessions"):
        day = session.text("timestamp")[:10]
        for turn in session.rows("turns"):
            yield turn.text("dia_id"), Turn(speaker=turn.text("speaker"), text=turn.text("text", blank=True), time=day)
