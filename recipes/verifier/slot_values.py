"""Draws values for the slots of the templates of near misses: names, dates, numbers and versions."""

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path

TEMPLATES = Path(__file__).with_name("near_misses.txt")


def _read_lists() -> dict[str, list[str]]:
    lines = [line[2:].split(": ", 1) for line in TEMPLATES.read_text("utf-8").splitlines() if line.startswith("* ")]
    return {name: values.split(" | ") for name, values in lines}


WORDS = _read_lists()
"""The values of each kind that is drawn from a list."""
MONTHS, NUMBERS = WORDS["month"], WORDS["number"]
SLOT = re.compile(r"\{(\w+?)(2?)\}")


class SlotValues:
    """The values of the slots; a slot keeps its value once drawn."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.texts: dict[str, str | tuple[str, ...]] = {}

    @property
    def subject(self) -> str:
        """The subject that the templates are about."""
        return str(self.texts["s"])

    def copy(self) -> "SlotValues":
        """Return values that can be changed apart."""
        result = SlotValues(self._rng)
        result.texts = dict(self.texts)
        return result

    def without_answers(self) -> "SlotValues":
        """Return a copy that keeps only the subject: further statements have details of their own."""
        result = SlotValues(self._rng)
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

        return SLOT.sub(value, template)

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
