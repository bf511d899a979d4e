"""Many clients of one memory at once, each checking every answer, and the time of each operation.

    python -m benchmarks.load PLACE [--seconds 600] [--processes 8] [--threads 8] [--pause 0]

PLACE is the path of a new SQLite file, or the URL of a PostgreSQL database; the key file stands in a temporary folder.
A client is a thread; the threads of a process share one open memory. Each client has five users of its own, and all
write to one more. Every text holds a word that stands nowhere else and tells its client. Each answer is checked: its
words belong to that user, and are of texts that exist. At the end, exports must hold exactly the words of what was
acknowledged, and the audit log and the file must be intact. `--pause` is the mean wait of a client between two calls,
in seconds; without it, clients ask as fast as they are answered.
"""

import argparse
import json
import multiprocessing
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from meve._postgres import is_postgres_url
from meve.errors import StoreBusyError
from meve.memory import GovernedMemory, Recall

SHARED_USER = "everybody"
USERS = 5
"""The users of each client."""
LETTERS = [a + b for a in "bdfglmnprt" for b in "aou"]
MARK = re.compile(rf"\bvo((?:{'|'.join(LETTERS)}){{6}})ko\b")
NOUNS = (
    "apple",
    "barn",
    "candle",
    "desk",
    "engine",
    "fence",
    "garden",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "mirror",
)
WEIGHTS = {
    "search": 38, "find": 10, "get": 6, "list": 4, "add": 18, "update": 8, "delete": 6, "put item": 3, "get item": 2,
    "delete item": 1, "add messages": 2, "page messages": 1, "forget user": 1,
}  # fmt: skip

T = TypeVar("T")
Place = tuple[str, str]
"""Path or URL, and the key file."""


@dataclass
class Outcome:
    """The calls of one client, and the words of each user that must be stored afterwards."""

    live: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """The word of each record, item and message, by its name."""
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Client:
    """Calls a memory at random, and checks each answer."""

    def __init__(self, memory: GovernedMemory, number: int, pause: float) -> None:
        self.memory, self.number, self.pause = memory, number, pause
        self.random = random.Random(number)
        self.users = [f"user {number}-{n}" for n in range(USERS)]
        self.outcome = Outcome()
        self.codes = count(number * 2_000_000)

    def run(self, end: float) -> Outcome:
        """Call until that time."""
        while time.monotonic() < end:
            name = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            user = self.random.choice([*self.users, SHARED_USER])
            try:
                getattr(self, "_" + name.replace(" ", "_"))(user)
            except StoreBusyError:
                self.outcome.counts["refused"] += 1
            except Exception as error:  # each is a finding
                self.outcome.problems.append(f"{name}: {type(error).__name__}: {error}")
            if self.pause:
                time.sleep(self.random.expovariate(1 / self.pause))
        return self.outcome

    def _timed(self, name: str, call: Callable[[], T]) -> T:
        start = time.perf_counter()
        answer = call()
        self.outcome.times[name].append(1_000 * (time.perf_counter() - start))
        return answer

    def _text(self, user: str) -> tuple[str, str]:
        """Return a new text and its word."""
        word = make_mark(next(self.codes) + (1_000_000 if user == SHARED_USER else 0))
        a, b = self.random.sample(NOUNS, 2)
        return f"Saw the {a} {word} beside a {b}.", word

    def _check(self, user: str, text: str, name: str) -> set[str]:
        """Note each word of an answer that isn't of this user, or was erased; return the words of this client."""
        words, known = find_marks(text), set(self.outcome.live[user].values())
        mine = {word for word in words if owner(word) == (self.number, user == SHARED_USER)}
        foreign = {w for w in words - mine if user != SHARED_USER or not owner(w)[1]}
        self.outcome.problems += [f"{name}: foreign {word} for {user}" for word in foreign]
        self.outcome.problems += [f"{name}: erased {word} for {user}" for word in mine - known]
        return mine

    def _pick(self, user: str, kind: str) -> str | None:
        """Return the name of something of this kind that this client wrote for a user."""
        names = [name for name in self.outcome.live[user] if name.startswith(kind)]
        return self.random.choice(names) if names else None

    def _search(self, user: str) -> None:
        query = f"Where was the {self.random.choice(NOUNS)}?"
        self._checked_search(user, "search", query)

    def _find(self, user: str) -> None:
        name = self._pick(user, "record")
        if name is not None:
            word = self.outcome.live[user][name]
            if word not in self._checked_search(user, "search", f"What about {word}?").text:
                self.outcome.problems.append(f"find: {word} of {user} isn't found")

    def _checked_search(self, user: str, name: str, query: str) -> Recall:
        recall = self._timed(name, lambda: self.memory.search(query, user_id=user))
        self._check(user, recall.text, name)
        self.outcome.counts["fewer ranked"] += recall.trace.phases[0].settings["shed"]
        return recall

    def _get(self, user: str) -> None:
        if name := self._pick(user, "record"):
            record = self._timed("get", lambda: self.memory.get(name, user_id=user))
            if self._check(user, record.text, "get") != {self.outcome.live[user][name]}:
                self.outcome.problems.append(f"get: {name} of {user} has another text")

    def _list(self, user: str) -> None:
        records = self._timed("list", lambda: self.memory.list(user_id=user))
        expected = {word for name, word in self.outcome.live[user].items() if name.startswith("record")}
        words = self._check(user, " ".join(r.text for r in records if r.kind == "fact"), "list")
        self.outcome.problems += [f"list: {word} of {user} is lost" for word in expected - words]

    def _add(self, user: str) -> None:
        (text, word), name = self._text(user), f"record {self.number}-{next(self.codes)}"
        self._timed("add", lambda: self.memory.add(text, user_id=user, id=name))
        self.outcome.live[user][name] = word

    def _update(self, user: str) -> None:
        if name := self._pick(user, "record"):
            text, word = self._text(user)
            self._timed("update", lambda: self.memory.update(name, user_id=user, text=text))
            self.outcome.live[user][name] = word

    def _delete(self, user: str) -> None:
        if name := self._pick(user, "record"):
            self._timed("delete", lambda: self.memory.delete(name, user_id=user))
            del self.outcome.live[user][name]

    def _put_item(self, user: str) -> None:
        (_, word), key = self._text(user), f"item {self.number}-{self.random.randrange(5)}"
        self._timed("put item", lambda: self.memory.items.put(("shelf",), key, {"word": word}, user_id=user))
        self.outcome.live[user][key] = word

    def _get_item(self, user: str) -> None:
        if key := self._pick(user, "item"):
            item = self._timed("get item", lambda: self.memory.items.get(("shelf",), key, user_id=user))
            if item is None or item.value != {"word": self.outcome.live[user][key]}:
                self.outcome.problems.append(f"get item: {key} of {user} has another value")

    def _delete_item(self, user: str) -> None:
        if key := self._pick(user, "item"):
            self._timed("delete item", lambda: self.memory.items.delete(("shelf",), key, user_id=user))
            del self.outcome.live[user][key]

    def _add_messages(self, user: str) -> None:
        texts = [self._text(user) for _ in range(2)]
        ids = [f"message {self.number}-{next(self.codes)}" for _ in texts]
        values = [{"role": "user", "text": text} for text, _ in texts]
        self._timed("add messages", lambda: self.memory.messages.add("s", values, user_id=user, ids=ids))
        self.outcome.live[user].update(zip(ids, (word for _, word in texts), strict=True))

    def _page_messages(self, user: str) -> None:
        page = partial(self.memory.messages.page, "s", user_id=user, limit=20, newest=True)
        messages = self._timed("page messages", page)
        self._check(user, json.dumps([each.value for each in messages]), "page messages")

    def _forget_user(self, user: str) -> None:
        if user != SHARED_USER:
            self._timed("forget user", lambda: self.memory.forget_user(user_id=user))
            self.outcome.live[user].clear()


def make_mark(code: int) -> str:
    """Return a word that stands for a number."""
    syllables = []
    for _ in range(6):
        code, digit = divmod(code, len(LETTERS))
        syllables.append(LETTERS[digit])
    return f"vo{''.join(syllables)}ko"


def owner(mark: str) -> tuple[int, bool]:
    """Return the number of the client that wrote a word, and whether for the user of all."""
    syllables = [LETTERS.index(mark[at : at + 2]) for at in range(2, 14, 2)]
    number, rest = divmod(sum(digit * len(LETTERS) ** n for n, digit in enumerate(syllables)), 2_000_000)
    return number, rest >= 1_000_000


def find_marks(text: str) -> set[str]:
    """Return the words of clients in a text."""
    return {match.group() for match in MARK.finditer(text)}


def open_memory(place: Place) -> GovernedMemory:
    """Open the memory of this place."""
    options: dict[str, Any] = {"key_file": place[1], "tenant": "load"} if is_postgres_url(place[0]) else {}
    return GovernedMemory.open(place[0], embedder="static", audit_key=b"key of the log, for this run" * 2, **options)


def run_process(place: Place, process: int, threads: int, seconds: float, pause: float) -> list[Outcome]:
    """Run the clients of one process."""
    with open_memory(place) as memory, ThreadPoolExecutor(threads) as pool:
        memory.search("a user without memories", user_id="nobody")  # loads the models
        clients = [Client(memory, process * threads + n, pause) for n in range(threads)]
        end = time.monotonic() + seconds
        return list(pool.map(lambda client: client.run(end), clients))


def check_end(place: Place, outcomes: list[Outcome]) -> list[str]:
    """Return what is lost, foreign or not erased, in the memory opened anew, and what is damaged."""
    expected: dict[str, set[str]] = defaultdict(set)
    for outcome in outcomes:
        for user, names in outcome.live.items():
            expected[user] |= set(names.values())
    problems = []
    with open_memory(place) as memory:
        for user, words in expected.items():
            found = find_marks(json.dumps(memory.export(user_id=user)))
            problems += [f"end: {word} of {user} is lost" for word in words - found]
            problems += [f"end: {word} of {user} is foreign or erased" for word in found - words]
        verified = memory.audit.verify()
        problems += [] if verified.ok else [f"end: the audit log isn't intact: {verified}"]
        problems += memory.find_damage()
        print(f"{sum(map(len, expected.values())):,} texts of {len(expected)} users, {verified.events:,} entries")
    return problems


def main() -> None:
    """Run all clients, check what they left, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=8, help="the clients of each process")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two calls of a client, on average")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        place = (options.place, str(Path(folder, "memory.keys")))
        open_memory(place).close()
        with ProcessPoolExecutor(options.processes, mp_context=multiprocessing.get_context("spawn")) as processes:
            jobs = [
                processes.submit(run_process, place, n, options.threads, options.seconds, options.pause)
                for n in range(options.processes)
            ]
            outcomes = [outcome for job in jobs for outcome in job.result()]
        problems = [problem for outcome in outcomes for problem in outcome.problems] + check_end(place, outcomes)
    report(outcomes, options.seconds)
    print(f"{len(problems)} problems", *problems[:40], sep="\n")
    sys.exit(bool(problems))


def report(outcomes: list[Outcome], seconds: float) -> None:
    """Print the times of each operation in milliseconds."""
    counts = sum((outcome.counts for outcome in outcomes), Counter[str]())
    times: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for name, each in outcome.times.items():
            times[name] += each
            times["all"] += each
    print(f"{len(outcomes)} clients, {len(times['all']) / seconds:.0f} calls a second, {dict(counts)}")
    print(f"{'':<14}{'calls':>8}{'p50':>8}{'p95':>8}{'p99':>8}{'most':>8}")
    for name, each in times.items():
        values = "".join(f"{value:>8.0f}" for value in (*np.percentile(each, (50, 95, 99)), max(each)))
        print(f"{name:<14}{len(each):>8}{values}")


if __name__ == "__main__":
    main()
