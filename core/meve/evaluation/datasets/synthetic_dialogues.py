"""Dialogues with questions: 2Wiki's passages among chit-chat, and LoCoMo's conversations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from meve.dialogue import Turn
from meve.errors import DatasetError
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets._row_reader import Row, index_rows, read_rows
from meve.evaluation.datasets.qa import read_gold_sentences
from meve.evaluation.types import GoldSentence, Question

SPEAKERS = ("Ann", "Ben")
"""The speakers of dialogues that are made of passages."""
WIKI, CHAT, LOCOMO = "2wiki", "irc", "locomo"
ADVERSARIAL = 5
"""LoCoMo's category of questions without a true answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueQuestion:
    """A question about a dialogue, whose key facts are the texts of `question.sentences`."""

    question: Question
    dialogue: str
    """The dialogue's name; several questions may be about one dialogue."""
    turns: tuple[Turn, ...]
    chat: int
    """The number of turns that are inserted chit-chat; 0 in original conversations."""


def read_wiki_dialogues(
    root: Path, *, questions: int | None, seed: int, chat: float, skip: int = 0,
    select: Callable[[Sequence[str]], Sequence[bool]] | None = None, name: str = "",
) -> list[DialogueQuestion]:  # fmt: skip
    """Return 2WikiMultihopQA's questions, each with a dialogue of its ten paragraphs among chit-chat.

    A paragraph becomes consecutive turns, one per sentence. Before, between and after the paragraphs stand consecutive
    messages of a chat room, without the names that they begin with.

    Args:
        root: the folder with a folder for each set; `2wiki` and `irc` are read.
        questions: how many questions are drawn; None for all.
        seed: seed of the draws.
        chat: the least share of chit-chat among the turns, in [0, 1).
        skip: how many of the questions drawn first are skipped, since settings were chosen on them.
        select: returns which of the chat room's texts may be used; None for all.
        name: a prefix of the dialogues' names.

    Raises:
        DatasetError: a set is absent, truncated, of another format, or too short for so much chit-chat.
    """
    rows = index_rows(read_rows(root / WIKI / "questions.jsonl"))
    passages = index_rows(read_rows(root / WIKI / "passages.jsonl.gz"))
    messages = read_small_talk(root)
    if select is not None:
        messages = [text for text, selected in zip(messages, select(messages), strict=True) if selected]
    sampled = sample_questions([_wiki_question(row) for row in rows.values()], None, seed)[skip:]
    dialogues = [
        _wiki_dialogue(question, rows[question.id], passages, messages, Random(f"{seed} {question.id}"), chat)
        for question in sampled[:questions]
    ]
    return [replace(dialogue, dialogue=name + dialogue.dialogue) for dialogue in dialogues]


def read_small_talk(root: Path) -> list[str]:
    """Return a chat room's messages in order, without notices and without the names of those addressed."""
    rows = [row for row in read_rows(root / CHAT / "messages.jsonl.gz") if not row.flag("system")]
    names = {row.text("speaker").casefold() for row in rows}
    messages = []
    for row in rows:
        first, _, rest = row.text("text", blank=True).strip().partition(" ")
        text = rest if first.rstrip(":,").casefold() in names else f"{first} {rest}"
        if text.strip():
            messages.append(text.strip())
    return messages


def _wiki_question(row: Row) -> Question:
    sentences = read_gold_sentences(row)
    return Question(
        id=row.text("id"),
        text=row.text("question"),
        gold={sentence.passage_id: 1 for sentence in sentences},
        sentences=sentences,
        answers=(row.text("answer"),),
        kind=row.text("type"),
    )


def _wiki_dialogue(
    question: Question, row: Row, passages: Mapping[str, Row], messages: Sequence[str], rng: Random, share: float
) -> DialogueQuestion:
    paragraphs = [_paragraph_sentences(passages[i]) for i in row.texts("context_passage_ids") if i in passages]
    rng.shuffle(paragraphs)
    facts = sum(map(len, paragraphs))
    chat = -(-int(facts * share * 1_000) // int((1 - share) * 1_000)) if share else 0
    if chat > len(messages):
        raise DatasetError(
            f"{CHAT} has {len(messages):,} usable messages, but {chat:,} are needed for a share of {share:.3g} beside "
            f"the {facts} sentences of question {question.id!r}: lower the share of chit-chat"
        )
    places = len(paragraphs) + 1
    gaps = [chat // places + (n < chat % places) for n in range(places)]
    at = rng.randrange(max(1, len(messages) - chat))
    texts: list[str] = []
    for gap, sentences in zip(gaps, [*paragraphs, []], strict=True):
        texts += [*messages[at : at + gap], *sentences]
        at += gap
    turns = tuple(Turn(speaker=SPEAKERS[n % 2], text=text) for n, text in enumerate(texts))
    return DialogueQuestion(question=question, dialogue=question.id, turns=turns, chat=len(turns) - facts)


def _paragraph_sentences(row: Row) -> list[str]:
    text, starts = row.text("text"), [*row.numbers("sent_starts"), None]
    sentences = (text[start:end].strip() for start, end in pairwise(starts))
    return [sentence for sentence in sentences if sentence]


def read_locomo_dialogues(root: Path, *, questions: int | None, seed: int) -> list[DialogueQuestion]:
    """Return LoCoMo's questions with an answer and evidence, each about a whole conversation of many sessions.

    The key facts are the turns that the set names as evidence, corrected by its audit. Image captions are left out.

    Args:
        root: the folder with a folder for each set.
        questions: how many questions are drawn; None for all.
        seed: seed of the draw.

    Raises:
        DatasetError: the set is absent, truncated, or of another format.
    """
    conversations = {
        key: dict(_turns_by_id(row))
        for key, row in index_rows(read_rows(root / LOCOMO / "conversations.jsonl"), "conversation_id").items()
    }
    by_id = {}
    for row in index_rows(read_rows(root / LOCOMO / "questions.jsonl")).values():
        turns = conversations[row.text("conversation_id")]
        audit = row.values.get("audit") or {}
        evidence = audit.get("correct_evidence") or row.values.get("evidence") or []
        facts = [(i, turns[i].text) for i in evidence if i in turns]
        answer = audit.get("correct_answer") or row.values.get("answer")
        if row.number("category", 1) != ADVERSARIAL and facts and len(facts) == len(evidence) and answer is not None:
            question = Question(
                id=row.text("id"), text=row.text("question"), gold=dict.fromkeys([i for i, _ in facts], 1),
                sentences=tuple(GoldSentence(passage_id=i, text=text) for i, text in facts), answers=(str(answer),),
                kind=row.text("category_name"),
            )  # fmt: skip
            by_id[question.id] = DialogueQuestion(
                question=question, dialogue=row.text("conversation_id"), turns=tuple(turns.values()), chat=0
            )
    return [by_id[q.id] for q in sample_questions([d.question for d in by_id.values()], questions, seed)]


def _turns_by_id(conversation: Row) -> Iterator[tuple[str, Turn]]:
    for session in conversation.rows("sessions"):
        day = session.text("timestamp")[:10]
        for turn in session.rows("turns"):
            yield turn.text("dia_id"), Turn(speaker=turn.text("speaker"), text=turn.text("text", blank=True), time=day)
