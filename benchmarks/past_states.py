"""Measure whether a router's evidence holds what held at a past time, beside `memory.search` of the same memory.

    python -m benchmarks.past_states [--unmaintained]

`past_states.json` holds stories told over months, with questions for states at past times, for events, and for counts,
lists, first and last things. The rules were written for the part `tuning`; `kept` was measured after them, and `fresh`
was written after that. `--unmaintained` leaves out the monthly maintenance, which closes former values.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from meve.memory import GovernedMemory, Recall
from meve.routing import MemoryRouter
from meve.testing.fakes import FakeClock

FILE = Path(__file__).with_suffix(".json")


def to_moment(day: str) -> datetime:
    """Return noon of a day."""
    return datetime.fromisoformat(day).replace(tzinfo=UTC, hour=12)


def tell(told: Sequence[Sequence[str]], now: str, *, maintained: bool) -> GovernedMemory:
    """Return a memory that was told the texts on their days."""
    clock = FakeClock(to_moment(told[0][0]))
    memory = GovernedMemory.open(Path(tempfile.mkdtemp()) / "memory.db", clock=clock)
    for day, text in told:
        if maintained and to_moment(day).month != clock.now().month:
            memory.maintain(user_id="user")
        clock.advance(to_moment(day) - clock.now())
        memory.add(text, user_id="user", source="chat_user")
    clock.advance(to_moment(now) - clock.now())
    if maintained:
        memory.maintain(user_id="user")
    return memory


def check(recall: Recall, needed: Sequence[str]) -> tuple[bool, bool]:
    """Return whether a recall holds all that is needed, and whether its first memory holds some of it."""
    first = bool(recall.records) and any(text in recall.records[0].text for text in needed)
    return all(text in recall.text for text in needed), first


def main() -> None:
    """Print for each part and kind of question how many recalls are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unmaintained", action="store_true", help="leave former values open")
    maintained = not parser.parse_args().unmaintained
    for part, content in json.loads(FILE.read_text("utf-8")).items():
        results = defaultdict[str, list[tuple[bool, ...]]](list)
        for story in content["stories"].values():
            with tell(story["told"], content["now"], maintained=maintained) as memory:
                router = MemoryRouter(memory, user_id="user")
                for kind, question, needed in story["questions"]:
                    routed, searched = router.recall(question), memory.search(question, user_id="user")
                    results[kind].append((*check(routed, needed), *check(searched, needed)))
        for kind, rows in results.items():
            right, first, searched_right, searched_first = (sum(column) for column in zip(*rows, strict=True))
            print(
                f"{part:7} {kind:6} {len(rows):3}: router {right} right, {first} first; "
                f"search {searched_right} right, {searched_first} first"
            )


if __name__ == "__main__":
    main()
