"""Makes near misses: passages that say almost what the question asks, beside passages that answer it.

A question and a passage about invented subjects come from templates (`near_misses.txt`). An answer becomes a near miss
when one detail that both share (day, year, number, version, place, name) is exchanged, when it is about another
subject, or when it tells another aspect of the subject: another unit, another person's role, or the contrary. Answers
are worded unlike the question and near misses like it, so that shared words predict nothing.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recipes.verifier.examples import Example
from recipes.verifier.slot_values import SLOT, TEMPLATES, WORDS, SlotValues

DAYS = WORDS["day"]
EXCHANGED = (1, 2)
"""Near misses per question."""
SEVERAL = 0.45
"""The share of passages that hold more than one sentence."""
NEGATED = 0.15
"""The share of further sentences that are negated."""

_VERBS = {f"{v}es" if v.endswith(("sh", "ch", "do", "go")) else f"{v}s": v for v in WORDS["verb"]} | {"has": "have"}
_NEGATIVES = (
    (re.compile(r" (is|are|was|were|could|must|should|would) (?!be )"), r" \1 not "),
    (re.compile(r" (?:can|may) "), " can't "),
    (re.compile(r" will "), " won't "),
    (re.compile(rf" ({'|'.join(_VERBS)}) "), lambda match: f" doesn't {_VERBS[match[1]]} "),
)


@dataclass(slots=True)
class Aspect:
    """What can be asked about the subjects of a topic."""

    name: str
    opposite: str = ""
    same: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)

    def is_answered_by(self, other: "Aspect") -> bool:
        """Return whether a statement of another aspect may answer this aspect's questions."""
        related = other.name in self.same or self.name in other.same
        return related or bool({*self.statements} & {*other.statements}) or bool({*self.questions} & {*other.questions})


@dataclass(slots=True)
class Topic:
    """Subjects that have the same aspects."""

    subjects: list[str] = field(default_factory=list)
    aspects: list[Aspect] = field(default_factory=list)


def read_topics(file: Path = TEMPLATES) -> list[Topic]:
    """Read the templates."""
    topics: list[Topic] = []
    for line in file.read_text("utf-8").splitlines():
        sign, _, rest = line.partition(" ")
        if sign == "@":
            topics.append(Topic())
        elif sign == "subjects:":
            topics[-1].subjects = [subject.strip() for subject in rest.split("|")]
        elif sign == "=":
            topics[-1].aspects.append(Aspect(rest))
        elif sign == "opposite:":
            topics[-1].aspects[-1].opposite = rest
        elif sign == "same:":
            topics[-1].aspects[-1].same = [name.strip() for name in rest.split(",")]
        elif sign == "?":
            topics[-1].aspects[-1].questions.append(rest)
        elif sign == "!":
            topics[-1].aspects[-1].statements.append(rest)
    return topics


def invented(count: int, seed: int) -> Iterator[Example]:
    """Yield `count` questions about invented subjects, each with an answer and near misses."""
    rng = random.Random(f"{seed}/near misses")
    topics = read_topics()
    weights = [len(topic.aspects) for topic in topics]
    for topic in rng.choices(topics, weights, k=count):
        for query, passage, relevant in _of_topic(topic, rng):
            yield Example(
                query=query, passage=passage, relevant=relevant, set="near_misses", kind="statement", part="train"
            )


def _of_topic(topic: Topic, rng: random.Random) -> Iterator[tuple[str, str, bool]]:
    aspect = rng.choice(topic.aspects)
    template = rng.choice(aspect.questions)
    values = SlotValues(rng)
    values.texts["s"] = values.fill(rng.choice(topic.subjects))
    query = _as_typed(values.fill(template), rng)
    others = [a for a in topic.aspects if a is not aspect and not aspect.is_answered_by(a)]
    yield query, _passage(aspect, query, values, others, rng, alike=False), True
    plain = [s for s in aspect.statements if negate(s)]
    shared = [
        name for name in sorted(_slots(template)) if name != "s" and all(name in _slots(s) for s in aspect.statements)
    ]
    for _ in range(rng.choice(EXCHANGED)):
        opposite = [a for a in others if a.name == aspect.opposite]
        ways = ["detail"] * 3 * bool(shared) + ["subject"] * ("{s}" in template) + ["opposite"] * 3 * bool(opposite)
        if not aspect.name.endswith("yes no"):
            ways += ["aspect"] * 2 + ["silence"] + ["negation"] * bool(plain)
        way = rng.choice(ways)
        if way == "detail":
            changed = values.copy()
            changed.exchange(rng.choice(shared))
            yield query, _passage(aspect, query, changed, others, rng, alike=True), False
        elif way == "subject":
            changed = values.copy()
            changed.texts["s"] = _other_subject(topic, values, rng)
            yield query, _passage(aspect, query, changed, others, rng, alike=True), False
        elif way == "negation":
            negated = Aspect(aspect.name, statements=[text for s in plain if (text := negate(s))])
            yield query, _passage(negated, query, values, others, rng, alike=True), False
        elif way == "silence":
            sentences = [values.copy().fill(rng.choice(a.statements)) for a in rng.sample(others, min(3, len(others)))]
            yield query, _join(sentences, values.subject, rng), False
        else:
            instead = opposite[0] if way == "opposite" else _alike(aspect, others, rng)
            yield (
                query,
                _passage(instead, query, values, [a for a in others if a is not instead], rng, alike=True),
                False,
            )


def negate(statement: str) -> str | None:
    """Return the contrary of a statement; None where no verb is known or the statement is negative already."""
    if re.search(r"\bno\b|\bnot\b|n't|never|nobody|nothing|without|only|any\b", statement, re.IGNORECASE):
        return None
    for pattern, negative in _NEGATIVES:
        text, count = pattern.subn(negative, statement, count=1)
        if count:
            return text
    return None


def _alike(aspect: Aspect, others: Sequence[Aspect], rng: random.Random) -> Aspect:
    """Choose another aspect, preferably one whose answer is of the same kind."""
    kinds = _slots(" ".join(aspect.statements)) - {"s"}
    near = [a for a in others if kinds & _slots(" ".join(a.statements))]
    return rng.choice(near if near and rng.random() < 0.7 else list(others))


def _passage(
    aspect: Aspect, query: str, values: SlotValues, others: Sequence[Aspect], rng: random.Random, *, alike: bool
) -> str:
    """Return a statement of the aspect, `alike` or unlike the question, perhaps amid statements of others."""
    tried = [values.copy().fill(rng.choice(aspect.statements)) for _ in range(2)]
    words = set(query.lower().split())
    tried.sort(key=lambda text: len(words & set(text.lower().split())), reverse=alike)
    statement = tried[0]
    if rng.random() >= SEVERAL:
        return _capital(statement)
    free = [a for a in others if a.name != aspect.opposite]
    rest = rng.sample(free, min(rng.randint(1, 3), len(free)))
    chosen = [rng.choice(a.statements) for a in rest]
    chosen = [negate(text) or text if rng.random() < NEGATED else text for text in chosen]
    sentences = [values.without_answers().fill(text) for text in chosen]
    sentences.insert(rng.randint(0, len(sentences)), statement)
    return _join(sentences, values.subject, rng)


def _join(sentences: Sequence[str], subject: str, rng: random.Random) -> str:
    """Join the sentences; later ones may say `it` for the subject."""
    result = [_capital(sentences[0])]
    for sentence in sentences[1:]:
        if subject.startswith("the ") and rng.random() < 0.5:
            sentence = re.sub(rf"(?<!\w){re.escape(subject)}(?!'s|\w)", "it", sentence)
        result.append(_capital(sentence))
    return " ".join(text if text[-1] in ".?!" else f"{text}." for text in result)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _as_typed(query: str, rng: random.Random) -> str:
    """Return the question as somebody might type it."""
    if rng.random() < 0.12:
        return query.rstrip("?").lower()
    return _capital(query)


def _other_subject(topic: Topic, values: SlotValues, rng: random.Random) -> str:
    """Return another subject: of another kind, or of the same kind with another name."""
    while True:
        text = SlotValues(rng).fill(rng.choice(topic.subjects))
        if not text.startswith(values.subject) and not values.subject.startswith(text):
            return text


def _slots(template: str) -> set[str]:
    return {f"{name}{second}" for name, second in SLOT.findall(template)}


_OPEN_ON = (
    ("When can I visit {s} on a {day}?", "At which hours is {s} open on {day}?",
     "At what time can I go to {s} on a {day}?", "{s} {day} hours", "until when is {s} open {day}"),
    ("{span}, guests of {s} are welcome until {time}.", "{s} can be visited {span} until {time}.",
     "Doors are open at {s} {span}, from {time} on.", "{s} ({span}): {time}."),
)  # fmt: skip
_DONE_IN = (
    ("How many people lived in {s} in {year}?", "Who governed {s} in {year}?", "What was {s} like in {year}?",
     "Which power ruled {s} in {year}?"),
    ("{span}, {big} people lived in {s}, ruled by {person}.",
     "{span}, {s} was a free port with {big} people under {person}.",
     "{s} belonged to {country} and had {big} residents {span}; {person} governed it."),
)  # fmt: skip


def spans(count: int, seed: int) -> Iterator[Example]:
    """Yield questions about a day or year, with passages about spans that hold it or don't."""
    rng = random.Random(f"{seed}/spans")
    topics = read_topics()
    places = {s for topic in topics for s in topic.subjects if "{town}" in s or (s.startswith("the ") and "{" not in s)}
    for _ in range(count):
        values = SlotValues(rng)
        questions, statements = rng.choice((_OPEN_ON, _DONE_IN))
        values.texts["s"] = values.fill(rng.choice(sorted(places)) if questions is _OPEN_ON[0] else "{town}")
        query = _as_typed(values.fill(rng.choice(questions)), rng)
        detail = str(values.texts["day" if questions is _OPEN_ON[0] else "year"])
        make = _span_of_days if questions is _OPEN_ON[0] else _span_of_years
        for relevant in (True, False):
            described = values.copy()
            described.texts["span"] = make(detail, relevant, rng)
            passage = _capital(described.fill(rng.choice(statements)))
            yield Example(
                query=query, passage=passage, relevant=relevant, set="near_misses", kind="statement", part="train"
            )


def _span_of_days(day: str, holds: bool, rng: random.Random) -> str:
    while True:
        first, last = sorted(rng.sample(range(7), 2))
        covered = DAYS[first : last + 1]
        forms = [f"from {DAYS[first]} to {DAYS[last]}", f"{DAYS[first]} through {DAYS[last]}"]
        if rng.random() < 0.5:
            covered, forms = rng.choice(
                ((DAYS[:5], ["on weekdays", "on working days"]), (DAYS[5:], ["at weekends", "on the weekend"]),
                 (DAYS, ["every day", "daily", "seven days a week"]),
                 ([*DAYS[:first], *DAYS[first + 1:]],
                  [f"every day except {DAYS[first]}", f"daily, not on {DAYS[first]}s"]))
            )  # fmt: skip
        if (day in covered) is holds:
            return rng.choice(forms)


def _span_of_years(year: str, holds: bool, rng: random.Random) -> str:
    while True:
        first = int(year) + rng.randint(-40, 20)
        last = first + rng.randint(2, 30)
        forms = [f"between {first} and {last}", f"from {first} to {last}", f"in the years {first} to {last}"]
        covered = range(first, last + 1)
        if rng.random() < 0.25:
            covered, forms = range(first // 10 * 10, first // 10 * 10 + 10), [f"in the {first // 10 * 10}s"]
        if (int(year) in covered) is holds:
            return rng.choice(forms)
