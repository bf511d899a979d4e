"""Measure what the rules record of everyday talk: facts and small talk, days, and standing wishes and their end.

python -m benchmarks.everyday_talk

It reads the lines of `tests/memory/everyday_talk.txt`, `everyday_days.txt`, `everyday_wishes.txt` and
`everyday_exclamations.txt`: those at even places served for writing the rules, those at odd places for measuring them.
"""

from datetime import date
from pathlib import Path

from meve.memory._classify.fact_extraction import extract_statements
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._contradiction.trained import TrainedUpdateJudge
from meve.memory._write.relative_days import resolve_days

FOLDER = Path(__file__).parents[1] / "tests" / "memory"
SPOKEN = date(2026, 2, 12)
ENDING = 12
"""The first changes of the file end the wish; the others don't."""


def main() -> None:
    """Print each share of both halves as a row of a table."""
    names = ("talk", "days", "wishes", "exclamations")
    talk, days, wishes, exclamations = (_read(f"everyday_{name}.txt") for name in names)
    changes = [line for line in wishes if "=>" in line]
    judge = TrainedUpdateJudge()
    groups = {
        "facts not recorded": [not extract_statements(line[1:]) for line in talk if line[0] == "+"],
        "other sentences recorded": [bool(extract_statements(line[1:])) for line in talk if line[0] == "-"],
        "days read wrongly": [_resolve(line) != _wanted(line) for line in days],
        "of them, a wrong date": [_resolve(line) not in (_wanted(line), line.split(" | ")[0]) for line in days],
        "wishes missed": [not is_standing_wish(line[1:]) for line in wishes if line[0] == "+"],
        "other requests taken for wishes": [is_standing_wish(line[1:]) for line in wishes if line[0] == "-"],
        "ends of wishes missed": [not _ends(judge, line) for line in changes[:ENDING]],
        "wishes ended wrongly": [_ends(judge, line) for line in changes[ENDING:]],
        "exclamations recorded": [bool(extract_statements(line[1:])) for line in exclamations if line[0] == "-"],
        "facts like them not recorded": [not extract_statements(line[1:]) for line in exclamations if line[0] == "+"],
    }
    for name, wrong in groups.items():
        halves = (f"{sum(half)} of {len(half)}" for half in (wrong[::2], wrong[1::2]))
        print(f"| {name} | {' | '.join(halves)} |")


def _read(name: str) -> list[str]:
    return (FOLDER / name).read_text(encoding="utf-8").splitlines()


def _resolve(line: str) -> str:
    return resolve_days(line.split(" | ")[0], SPOKEN)


def _wanted(line: str) -> str:
    text, wanted = line.split(" | ")
    return text if wanted == "=" else wanted


def _ends(judge: TrainedUpdateJudge, line: str) -> bool:
    older, newer = line.split(" => ")
    return judge.judge(older, newer).relation == "replaces" and is_standing_wish(newer)


if __name__ == "__main__":
    main()
