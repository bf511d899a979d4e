"""Makes examples from conversations that were written for the verifier's training (`conversations/*.jsonl`).

A conversation has dated sessions of turns, numbered from 0 through all sessions, and about 15 questions, each in two
wordings (`q`). `answers` lists the turns that answer a question or a part of it; `from` is the first turn that has to
be read with the `turn`: itself where it can be understood alone, else the question before it, for example. `near`
lists turns that only seem to answer: another person, day or thing, or a plan. `unanswered` holds questions that no
turn answers. The kinds are `friends`, `assistant`, `teams`, `groups`, `service` and `technical`, and of long turns
`letters` and `long_assistant`. All were written for this project. `recipes.verifier.further --round conversations`
trains a round with them.

A passage is one turn, or a turn with turns before and after it in its session. If a turn needs the turns before it, no
passage holds it alone, and those turns without it make an irrelevant passage.
"""

import json
import random
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from meve.training.mining import Miner
from meve.types import Passage
from recipes.verifier.examples import Example
from recipes.verifier.splits import part_of

FOLDER = Path(__file__).parent / "conversations"
ALONE = 0.5
"""The share of turns that are read alone, where they can be understood alone."""
BEFORE, AFTER = (0, 1, 1, 2), (0, 0, 1)
"""The numbers of turns that are read before and after a turn."""
AGAIN, BESIDE = 0.25, 0.2
"""The shares of answers that are read a second time with other neighbours, and of wordings that are also paired with a
similar turn of their conversation."""
LONGEST, CUT = 1_100, 1_300
"""The most characters of a passage with neighbours that aren't needed, and of any: training would cut off the rest."""
ROLES = (("user", "assistant"), ("User", "Assistant"), ("Human", "AI"), ("USER", "ASSISTANT"), ("Me", "Bot"))
LINES = ("{0}: {1}", "{0}: {1}", "{0}: {1}", "**{0}**: {1}", "<{0}> {1}", "[{2}] {0}: {1}", "{0} ({2}): {1}", "{1}")
"""The ways to write a turn. The last leaves out who speaks; only turns with an assistant's user are written so."""

Conversation = Mapping[str, Any]


def read_conversations(folder: Path = FOLDER) -> Iterator[tuple[str, Conversation]]:
    """Yield the kind and the content of every conversation."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            yield file.stem, json.loads(line)


def examples(seed: int, folder: Path = FOLDER) -> Iterator[Example]:
    """Yield the examples of all conversations; their `part` is `train`, `dev` or `test`, by the title."""
    rng = random.Random(f"{seed}/conversations")
    for kind, conversation in read_conversations(folder):
        part = part_of("conversations", conversation["title"])
        talk = _Turns(conversation, rng)
        for question in (*conversation["questions"], *conversation["unanswered"]):
            for query, passage, relevant in _pairs(question, talk, rng):
                if len(passage) <= CUT:
                    yield Example(
                        query=query, passage=passage, relevant=relevant, set=f"conversations_{kind}",
                        kind="statement", part=part,
                    )  # fmt: skip


def read_corpora(part: str = "dev") -> Iterator[tuple[list[Passage], list[tuple[str, set[str]]]]]:
    """Yield the turns of each conversation of a part, and its questions with the ids of the turns that answer them."""
    for n, (_, conversation) in enumerate(read_conversations()):
        if part_of("conversations", conversation["title"]) != part:
            continue
        turns = [turn for session in conversation["sessions"] for turn in session["turns"]]
        passages = [Passage(id=f"{n}-{at}", text=f"{speaker}: {text}") for at, (speaker, text) in enumerate(turns)]
        asked = [
            (query, {f"{n}-{answer['turn']}" for answer in question["answers"]})
            for question in conversation["questions"]
            for query in question["q"]
        ]
        yield passages, asked


def _pairs(question: Mapping[str, Any], talk: "_Turns", rng: random.Random) -> Iterator[tuple[str, str, bool]]:
    answers = question.get("answers", ())
    gold = frozenset(answer["turn"] for answer in answers)
    known = gold.union(question["near"], *(range(a["from"], a["turn"]) for a in answers))
    for query in question["q"]:
        for answer in answers:
            for _ in range(1 + (rng.random() < AGAIN)):
                yield query, talk.draw(answer["from"], answer["turn"]), True
        if rng.random() < BESIDE:
            beside = talk.miner.draw(query, 1, lambda i: i not in known, depth=len(talk.texts) // 2)
            yield from ((query, talk.draw(at, at, without=gold), False) for at in beside)
    misled = [rng.choice(question["q"])] if gold else question["q"]
    yield from ((query, talk.draw(at, at, without=gold), False) for query in misled for at in question["near"])
    for answer in answers:
        if answer["from"] < answer["turn"] and gold.isdisjoint(range(answer["from"], answer["turn"])):
            first, last = answer["from"], answer["turn"] - 1
            yield rng.choice(question["q"]), talk.draw(first, last, without=gold), False


class _Turns:
    """Writes stretches of one conversation as passages."""

    def __init__(self, conversation: Conversation, rng: random.Random) -> None:
        sessions = conversation["sessions"]
        self._turns = [(*turn, session["date"]) for session in sessions for turn in session["turns"]]
        self._session = [n for n, session in enumerate(sessions) for _ in session["turns"]]
        self._rng = rng
        self.texts = [text for _, text, _ in self._turns]
        self.miner = Miner([f"{speaker}: {text}" for speaker, text, _ in self._turns], rng)
        self._assistant = {speaker.lower() for speaker, _, _ in self._turns} in ({"user", "assistant"}, {"human", "ai"})

    def draw(self, first: int, last: int, *, without: Set[int] = frozenset()) -> str:
        """Return the turns `first` to `last`, perhaps between neighbours of their session that aren't `without`."""
        rng, begin, end = self._rng, first, last
        if first < last or rng.random() >= ALONE:
            begin, end = first - rng.choice(BEFORE), last + rng.choice(AFTER)
        begin = max(begin, *(n + 1 for n in without if n < first), 0)
        end = min(end, *(n - 1 for n in without if n > last), len(self._turns) - 1)
        near = [n for n in range(begin, end + 1) if self._session[n] == self._session[last]]
        if sum(len(self.texts[n]) for n in near) > LONGEST:
            near = list(range(first, last + 1))
        return self._write(near)

    def _write(self, rows: list[int]) -> str:
        line = self._rng.choice(LINES if self._assistant else LINES[:-1])
        names = dict(zip(ROLES[0] + ROLES[2], self._rng.choice(ROLES) * 2, strict=True)) if self._assistant else {}
        return "\n".join(line.format(names.get(speaker, speaker), text, date) for speaker, text, date in
                         (self._turns[n] for n in rows))  # fmt: skip
