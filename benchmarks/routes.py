"""Measure how often the router chooses the tier of a question's type, for all questions of the sets, without a memory.

    python -m benchmarks.routes --data DATA

Prints for each set, half and question type the share of right tiers, that of right or heavier ones, and how many
questions each tier gets.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from meve.evaluation.experiments.routing.cases import HALVES, RoutingCase
from meve.evaluation.experiments.routing.experiment import SETS
from meve.routing import RouterConfig, Tier
from meve.routing._classifier import load_classifier
from meve.routing._router import route

ORDER = list(Tier)


def choose_tier(case: RoutingCase) -> Tier:
    """Return the tier that rules and classifier choose."""
    return route(
        case.text, now=case.at, config=RouterConfig(), classifier=load_classifier(), ask_llm=None
    ).tier  # fmt: skip


def print_shares(name: str, cases: Sequence[RoutingCase]) -> None:
    """Print a line of shares and numbers."""
    chosen = [choose_tier(case) for case in cases]
    pairs = [(case.tier, tier) for case, tier in zip(cases, chosen, strict=True) if case.tier is not None]
    counts = Counter(chosen)
    line = f"{name:56} {len(cases):5}"
    if pairs:
        right = sum(tier is wanted for wanted, tier in pairs) / len(pairs)
        enough = sum(ORDER.index(tier) >= ORDER.index(wanted) for wanted, tier in pairs) / len(pairs)
        line += f"  right {right:.3f}  right or heavier {enough:.3f}"
    print(line + "  " + "  ".join(f"{tier} {counts[tier]}" for tier in Tier))


def main() -> None:
    """Print the shares of each set, half and question type."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets' folders")
    options = parser.parse_args()
    for name, read in SETS.items():
        cases = read(options.data).cases
        for half in HALVES:
            of_half = [case for case in cases if case.half == half]
            types = sorted({(not case.evidence, case.type) for case in of_half})
            if of_half:
                print_shares(f"{name}, {half} half", [case for case in of_half if case.evidence])
            for unknown, type in types:
                chosen = [case for case in of_half if case.type == type and (not case.evidence) is unknown]
                print_shares(f"  {type}{', no answer' if unknown else ''}", chosen)


if __name__ == "__main__":
    main()
