"""Makes near misses: passages that say almost what the question asks, beside passages that answer it.

A question and a passage about invented subjects come from templates (`near_misses.txt`). An answer becomes a near miss
when one detail that both share (day, year, number, version, place, name) is exchanged, when it is about another
subject, or when it tells another aspect of the subject: another unit, another person's role, or the contrary. Answers
are worded unlike the question and near misses like it, so that shared words predict nothing.

Questions of the training sets become near misses when a detail is exchanged in the question.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from meve.components._sentence_splitter import split_sentences
from recipes.verifier.examples import Example
from recipes.verifier.pairs import rows_of
from recipes.verifier.splits import part_of

TEMPLATES = Path(__file__).with_name("near_misses.txt")


def _read_lists() -> dict[str, list[str]]:
    lines = [line[2:].split(": ", 1) for line in TEMPLATES.read_text("utf-8").splitlines() if line.startswith("* ")]
    return {name: values.split(" | ") for name, values in lines}


WORDS = _read_lists()
DAYS, MONTHS, NUMBERS = WORDS["day"], WORDS["month"], WORDS["number"]
EXCHANGED = (1, 2)
"""Near misses per question."""
SEVERAL = 0.45
"""The share of passages that hold more than one sentence."""
FROM_SETS: Mapping[str, int] = {"squad_sentences": 1500, "squad2": 500, "xquad": 300, "qed": 150}
"""The number of questions of each training set whose details are exchanged."""

NEGATED = 0.15
"""The share of further sentences that are negated."""

_VERBS = {f"{v}es" if v.endswith(("sh", "ch", "do", "go")) else f"{v}s": v for v in WORDS["verb"]} | {"has": "have"}
_NEGATIVES = (
    (re.compile(r" (is|are|was|were|could|must|should|would) (?!be )"), r" \1 not "),
    (re.compile(r" (?:can|may) "), " can't "),
    (re.compile(r" will "), " won't "),
    (re.compile(rf" ({'|'.join(_VERBS)}) "), lambda match: f" doesn't {_VERBS[match[1]]} "),
)

_SLOT = re.compile(r"\{(\w+?)(2?)\}")


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
    values = _Values(rng)
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
    aspect: Aspect, query: str, values: "_Values", others: Sequence[Aspect], rng: random.Random, *, alike: bool
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


def _other_subject(topic: Topic, values: "_Values", rng: random.Random) -> str:
    """Return another subject: of another kind, or of the same kind with another name."""
    while True:
        text = _Values(rng).fill(rng.choice(topic.subjects))
        if not text.startswith(values.subject) and not values.subject.startswith(text):
            return text


def _slots(template: str) -> set[str]:
    return {f"{name}{second}" for name, second in _SLOT.findall(template)}


class _Values:
    """The values of the slots; a slot keeps its value once drawn."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.texts: dict[str, str | tuple[str, ...]] = {}

    @property
    def subject(self) -> str:
        return str(self.texts["s"])

    def copy(self) -> "_Values":
        result = _Values(self._rng)
        result.texts = dict(self.texts)
        return result

    def without_answers(self) -> "_Values":
        """Return a copy that keeps only the subject: further statements have details of their own."""
        result = _Values(self._rng)
        result.texts = {"s": self.texts["s"]}
        return result

    def fill(self, template: str) -> str:
        """Return the template with values; a value may be worded in several ways."""

        def value(match: re.Match[str]) -> str:
            key = match[0][1:-1]
            if key not in self.texts:
                self.texts[key] = self._draw(match[1], key)
            drawn = self.texts[key]
            return drawn if isinstance(drawn, str) else self._rng.choice(drawn)

        return _SLOT.sub(value, template)

    def exchange(self, key: str) -> None:
        """Give a slot another value of its kind, often a similar one."""
        kind, old = key.rstrip("2"), self.texts[key]
        for _ in range(50):
            near = self._near(kind, old) if self._rng.random() < 0.5 else None
            new = near or draw(kind, self._rng)
            if new != old and not {*_forms(new)} & {*_forms(old)}:
                self.texts[key] = new
                return

    def _draw(self, kind: str, key: str) -> str | tuple[str, ...]:
        partner = self.texts.get(key.rstrip("2"))
        while True:
            new = draw(kind, self._rng)
            if new != partner:
                return new

    def _near(self, kind: str, old: str | tuple[str, ...]) -> str | None:
        text = _forms(old)[0]
        if kind in ("year", "num", "big") and text.isdigit():
            return str(max(1, int(text) + self._rng.choice((-10, -3, -2, -1, 1, 2, 3, 10))))
        if kind == "version":
            parts = text.split(".")
            at = self._rng.randrange(len(parts))
            parts[at] = str(max(0, int(parts[at]) + self._rng.choice((-1, 1, 2))))
            return ".".join(parts)
        return None


def _forms(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def draw(kind: str, rng: random.Random) -> str | tuple[str, ...]:
    """Draw a value of a kind: one text, or its forms."""
    if kind in WORDS:
        return rng.choice(WORDS[kind])
    return _DRAW[kind](rng)


def _person(rng: random.Random) -> tuple[str, ...]:
    first, last = rng.choice(WORDS["first name"]), rng.choice(WORDS["last name"])
    title = rng.choice(("Dr.", "Mr.", "Ms.", "Prof.", "Mrs."))
    return rng.choice(((f"{first} {last}", last), (f"{title} {last}",), (first,), (f"{first} {last}",)))


def _number(rng: random.Random) -> tuple[str, ...]:
    n = rng.randint(2, 12)
    return (str(n), NUMBERS[n])


def _syllables(rng: random.Random, count: int) -> str:
    heads, tails = (
        [
            "b",
            "br",
            "d",
            "dr",
            "f",
            "g",
            "gl",
            "h",
            "k",
            "kl",
            "l",
            "m",
            "n",
            "p",
            "pr",
            "r",
            "s",
            "st",
            "t",
            "tr",
            "v",
            "w",
            "z",
        ],
        ["a", "al", "an", "ar", "e", "el", "en", "i", "in", "o", "on", "or", "u"],
    )
    return "".join(rng.choice(heads) + rng.choice(tails) for _ in range(count)).capitalize()


def _version(rng: random.Random) -> str:
    return rng.choice(
        (
            f"{rng.randint(1, 12)}",
            f"{rng.randint(0, 9)}.{rng.randint(0, 20)}",
            "1.{}.{}".format(*rng.sample(range(30), 2)),
        )
    )


def _time(rng: random.Random) -> str:
    hour = rng.randint(1, 12)
    return rng.choice(
        (
            f"{hour} {rng.choice(('a.m.', 'p.m.'))}",
            f"{hour + rng.choice((0, 11))}:{rng.choice('0134')}0",
            f"half past {NUMBERS[hour]}",
            f"{NUMBERS[hour]} o'clock",
        )
    )


def _money(rng: random.Random) -> str:
    amount = rng.choice(
        (f"{rng.randint(2, 99)}", f"{rng.randint(1, 40)}.{rng.choice((20, 50, 80, 90))}", f"{rng.randint(1, 900)},000")
    )
    return rng.choice(
        (f"{amount} euros", f"${amount}", f"{amount} dollars", f"€{amount}", f"{amount} pounds", f"{amount} francs")
    )


def _date(rng: random.Random) -> tuple[str, ...]:
    day, month = rng.randint(1, 28), rng.choice(MONTHS)
    return (f"{day} {month}", f"{month} {day}")


def _path(rng: random.Random) -> str:
    name = _syllables(rng, 2).lower()
    return rng.choice(
        (
            f"/etc/{name}.conf",
            f"~/.{name}rc",
            f"/var/log/{name}.log",
            f"{name}.toml",
            f"config/{name}.yaml",
            f"%APPDATA%\\{name}.ini",
        )
    )


def _flag(rng: random.Random) -> str:
    word = _syllables(rng, 2).lower()
    return rng.choice(
        (
            f"--{word}",
            f"-{word[0]}",
            f"`{word}=0`",
            f"--no-{word}",
            f"`{word}: false`",
            f"{word.upper()}_OFF=1",
            f"`set {word} 1`",
            f"the switch {word}",
        )
    )


def _name(rng: random.Random, *endings: str) -> str:
    return rng.choice(WORDS["last name"]) + rng.choice(endings)


_DRAW: Mapping[str, Callable[[random.Random], str | tuple[str, ...]]] = {
    "date": _date,
    "year": lambda rng: str(rng.randint(1850, 2025) if rng.random() < 0.3 else rng.randint(1990, 2025)),
    "n": _number,
    "num": lambda rng: str(rng.randint(5, 900) if rng.random() < 0.4 else rng.randint(5, 99)),
    "big": lambda rng: f"{rng.randint(1000, 99999)}",
    "time": _time,
    "money": _money,
    "person": _person,
    "street": lambda rng: _name(rng, " Street", " Lane", " Square", " Road", " Avenue"),
    "town": lambda rng: _syllables(rng, 2) + rng.choice(("", "", "berg", "ton", "wick", "stad", "via")),
    "product": lambda rng: _syllables(rng, 2) + rng.choice(("", "la", f" {rng.randint(2, 9)}", " Pro", " Mini")),
    "drug": lambda rng: _syllables(rng, 2) + rng.choice(("ol", "in", "ex", "al", "ine", "um")),
    "org": lambda rng: _name(rng, " & Sons", " Group", " Labs", " Works"),
    "version": _version,
    "code": lambda rng: rng.choice((f"E{rng.randint(1, 99)}", f"F-{rng.randint(10, 99)}", f"{rng.randint(10, 999)}")),
    "path": _path,
    "flag": _flag,
    "phone": lambda rng: f"{rng.randint(100, 999)} {rng.randint(1000, 9999)}",
    "mail": lambda rng: f"{_syllables(rng, 2).lower()}@{_syllables(rng, 2).lower()}.org",
}  # fmt: skip

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
        values = _Values(rng)
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


_YEAR = re.compile(r"\b(1[5-9]\d\d|20[0-2]\d)\b")
_DIGITS = re.compile(r"\b\d{1,3}\b(?![.,]\d)")
_DAY = re.compile(rf"\b({'|'.join(DAYS)})\b", re.IGNORECASE)
_MONTH = re.compile(rf"\b({'|'.join(m for m in MONTHS if m != 'May')})\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,3}")


def exchanged(folder: Path, seed: int) -> Iterator[Example]:
    """Yield questions of the training sets with one detail exchanged, and the same questions unchanged."""
    for name, count in FROM_SETS.items():
        rng = random.Random(f"{seed}/exchanged/{name}")
        rows = [r for r in rows_of(folder, name) if r["positive"] and part_of(r["source"], str(r["group"])) == "train"]
        names = sorted({n for r in rows for n in _NAME.findall(r["query"])})
        made = 0
        for row in rng.sample(rows, len(rows)):
            changed = exchange_detail(row["query"], row["positive"], names, rng)
            if changed and made < count:
                made += 1
                passage = row["positive"]
                for query, relevant in ((row["query"], True), (changed, False)):
                    yield Example(
                        query=query, passage=passage, relevant=relevant, set=name, kind="exchanged", part="train"
                    )


def unanswerable(folder: Path, count: int, seed: int) -> Iterator[Example]:
    """Yield unanswerable questions of SQuAD 2.0, each with the sentence of its passage that is most like it."""
    rng = random.Random(f"{seed}/unanswerable")
    rows = rows_of(folder, "squad2_unanswerable")
    rows = [r for r in rows if part_of(r["source"], str(r["group"])) == "train"]
    for row in rng.sample(rows, min(count, len(rows))):
        words = set(re.findall(r"\w{4,}", row["query"].lower()))
        sentences = split_sentences(row["negatives"][0])
        nearest = max(sentences, key=lambda s: len(words & set(re.findall(r"\w{4,}", s.lower()))))
        yield Example(
            query=row["query"],
            passage=nearest.strip(),
            relevant=False,
            set="squad2_unanswerable",
            kind="exchanged",
            part="train",
        )


def exchange_detail(query: str, passage: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Exchange a detail that question and passage share for one that the passage doesn't hold."""
    lower = passage.lower()
    ways: list[tuple[str, Callable[[str], str]]] = []
    for pattern, other in (
        (_YEAR, lambda old: str(int(old) + rng.choice((-30, -10, -7, -3, -2, -1, 1, 2, 3, 7, 10, 30)))),
        (_DAY, lambda _: rng.choice(DAYS)),
        (_MONTH, lambda _: rng.choice(MONTHS)),
        (_NAME, lambda _: rng.choice(names)),
        (_DIGITS, lambda old: str(int(old) + rng.choice((-5, -2, -1, 1, 2, 5, 10)))),
    ):
        ways += [(m[0], other) for m in pattern.finditer(query) if m[0].lower() in lower]
    rng.shuffle(ways)
    for old, other in ways:
        for _ in range(10):
            new = other(old)
            if not any(word in lower for word in new.lower().split() if len(word) > 3) and new.lower() not in lower:
                return query.replace(old, new.lower() if query.islower() else new)
    return None
