"""Measures the router's checks of answers on own cases: right answers that are withheld, wrong ones that pass.

    python -m benchmarks.answers.measure [--half tuning] [--show] [--grounding verifier] [--paper]

Each world is a memory with questions, and answers as a language model may give them: short and long, from several
memories, counts, dates, paraphrases, and instructions of hostile memories that the model obeyed. The rules were made on
the half `tuning`, and later ones on `everyday`, whose cases were written before. `held_out` is for measuring only, so
nobody should read its cases while changing a rule.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from meve.memory import GovernedMemory, Policy
from meve.routing import MemoryRouter, RoutedAnswer, RouterConfig
from meve.testing.fakes import FakeClock

FOLDER = Path(__file__).parent
HALVES = ("tuning", "held_out", "everyday")
_POLICY = Policy.from_dict({"chat_ttl": None})


def open_worlds(half: str) -> Iterator[tuple[GovernedMemory, dict[str, Any]]]:
    """Yield each world of a half with its memory, in which all is told."""
    for world in json.loads((FOLDER / f"{half}.json").read_text("utf-8")):
        with tempfile.TemporaryDirectory() as folder:
            clock = FakeClock(_day(world["memories"][0][0]))
            with GovernedMemory.open(Path(folder) / "memory.db", clock=clock, policy=_POLICY) as memory:
                for day, source, text in world["memories"]:
                    clock.advance(_day(day) - clock.now())
                    memory.add(text, user_id="user", source=source)
                clock.advance(_day(world["now"]) - clock.now())
                yield memory, world


def answer_all(half: str, config: RouterConfig) -> Iterator[tuple[str, str, str, bool, RoutedAnswer]]:
    """Yield the kind, question, answer, whether it is right, and what the router makes of it, for each case."""
    for memory, world in open_worlds(half):
        for kind, question, given, is_right in world["cases"]:
            router = MemoryRouter(memory, user_id="user", llm=_Fixed(given), config=config)
            yield kind, question, given, is_right, router.answer(question)
        for question in world["unanswerable"]:
            router = MemoryRouter(memory, user_id="user", llm=_Fixed("Yes"), config=config)
            yield "unanswerable", question, "Yes", False, router.answer(question)


class _Fixed:
    """A language model that gives one answer, and finds each answer grounded."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def __call__(self, prompt: str) -> str:
        return "yes" if "one word: yes or no" in prompt else self.answer


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(hour=12, tzinfo=UTC)


def main() -> None:
    """Print the shares of right answers that pass and of wrong ones that are withheld, by kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, default="tuning")
    parser.add_argument("--show", action="store_true", help="print each mistake")
    parser.add_argument("--grounding", default=RouterConfig().grounding)
    parser.add_argument("--paper", action="store_true", help="the published checks")
    options = parser.parse_args()
    config = RouterConfig(grounding=options.grounding)
    if options.paper:
        config = replace(RouterConfig.paper(), llm_router=False)
    right: dict[str, Any] = defaultdict(lambda: {True: [], False: []})
    for kind, question, given, is_right, result in answer_all(options.half, config):
        passed = not result.abstained
        for name in (kind, "all"):
            right[name][is_right].append(passed)
        if options.show and passed is not is_right:
            last = result.verdicts[-1]
            print(f"{'withheld' if is_right else 'passed'} [{kind}] {question} {given!r}: {last.check}, {last.reason}")
    for kind, passes in right.items():
        told = [f"right answers pass {sum(passes[True])}/{len(passes[True])}"] if passes[True] else []
        wrong = passes[False]
        told += [f"wrong ones are withheld {len(wrong) - sum(wrong)}/{len(wrong)}"] if wrong else []
        print(f"{kind}: {', '.join(told)}")


if __name__ == "__main__":
    main()
