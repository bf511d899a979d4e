"""Measure how often the router chooses the tier of a question's type, for all questions of the sets, without a memory.

    python -m benchmarks.routes [--data DATA] [--fitted] [--times]

Prints how many messages outside the tiers (`outside_tiers.txt`: small talk, tasks, general questions, commands to other
tools) get no memories but those that answer them, and how many that look alike but need memories get them. The rules
were written for the first file; the second one was set aside. With a data
folder, prints for each set, half and question type the share of right tiers, that of right or heavier ones, and how
many questions each tier gets. `--fitted` also prints the share of right tiers by a classifier that is fitted to the
tiers of the set's own tuning half, with MiniLM's vectors of the questions: about what their words can tell. `--times`
prints only the CPU time of a plan, and how much of it the embedding of the question takes.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from meve.components.embedders import ACCURATE, resolve_embedder
from meve.evaluation.experiments.routing.cases import HALVES, RoutingCase
from meve.evaluation.experiments.routing.experiment import SETS
from meve.routing import RoutePlan, RouterConfig, Tier
from meve.routing._classifier import load_classifier, make_features
from meve.routing._router import route
from meve.routing._rules import find_intent
from meve.routing._tiers import needs_nearest

OUTSIDE = [Path(__file__).with_name(f"outside_tiers{half}.txt") for half in ("", "_held_out")]
NEEDING = "memory"
"""The kind of message that needs the memory."""
ORDER = list(Tier)
TIMED = (
    "What is my name?", "Where did I park the car?", "What did I do last week?", "What did I do on 3 May?",
    "How many times did I go hiking since May?",
)  # fmt: skip
"""The questions of `--times`: the last three name a time."""
ROUNDS = 300
PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0)


def print_outside(file: Path) -> None:
    """Print for each kind of message how many are handled right, and the others."""
    kind, messages = "", dict[str, list[str]]()
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("# "):
            kind = line.removeprefix("# ")
        else:
            messages.setdefault(kind, []).append(line)
    print(file.stem)
    for kind, own in messages.items():
        plans = [plan(text) for text in own]
        wrong = [each for each in plans if is_unread(each) is (kind == NEEDING)]
        print(f"  {kind}: {len(own) - len(wrong)} of {len(own)} right")
        for each in wrong:
            print(f"    {each.question!r}: {each.tier}, {each.intent} ({each.reason})")


def is_unread(chosen: RoutePlan) -> bool:
    """Return whether a message gets no memories but those that the verifier takes for an answer."""
    return chosen.intent in ("chat", "task", "general") and not needs_nearest(chosen)


def plan(text: str, at: datetime | None = None) -> RoutePlan:
    """Return what rules and classifier plan."""
    now = at or datetime.now(UTC)
    return route(text, now=now, config=RouterConfig(), classifier=load_classifier(), ask_llm=None)


def print_fitted(name: str, cases: Sequence[RoutingCase]) -> None:
    """Print the shares of right tiers, on the table half, of classifiers fitted on the tuning half."""
    from sklearn.linear_model import LogisticRegression

    known = [case for case in cases if case.tier is not None]
    texts, findings = [case.text for case in known], [find_intent(case.text) for case in known]
    own = make_features(texts, findings, load_classifier().embedder)
    features = np.hstack([own, resolve_embedder(ACCURATE).embed_passages(texts)])
    tiers, fits = (np.array([str(case.tier) for case in known]), np.array([case.half == "tuning" for case in known]))
    for penalty in PENALTIES:
        fitted = LogisticRegression(C=1 / penalty, max_iter=2_000).fit(features[fits], tiers[fits])
        right = (fitted.predict(features[~fits]) == tiers[~fits]).mean()
        print(f"{name}, fitted with penalty {penalty}: right {right:.3f} of {(~fits).sum()}")


def print_times() -> None:
    """Print the median CPU time of each plan and of its embedding, which are measured in turns."""
    for text in TIMED:
        finding, embedder = find_intent(text), load_classifier().embedder
        embed = partial(make_features, [text], [finding], embedder)
        rounds = [(measure(partial(plan, text)), measure(embed)) for _ in range(ROUNDS)]
        whole, embedding = (median(each) for each in zip(*rounds, strict=True))
        print(f"{text:45} {whole:.2f} ms, embedding {embedding:.2f}, beside it {whole - embedding:.2f}")


def measure(run: Callable[[], object]) -> float:
    """Return the CPU time of a call, in milliseconds."""
    began = time.thread_time()
    run()
    return (time.thread_time() - began) * 1e3


def print_shares(name: str, cases: Sequence[RoutingCase]) -> None:
    """Print a line of shares and numbers."""
    chosen = [plan(case.text, case.at).tier for case in cases]
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
    parser.add_argument("--data", type=Path, help="the folder with the sets' folders")
    parser.add_argument("--fitted", action="store_true", help="fit classifiers to the tuning halves as well")
    parser.add_argument("--times", action="store_true", help="print only the CPU time of a plan")
    options = parser.parse_args()
    if options.times:
        print_times()
        return
    for file in OUTSIDE:
        print_outside(file)
    for name, read in SETS.items() if options.data else ():
        cases = read(options.data).cases
        if options.fitted and {case.half for case in cases if case.evidence} == set(HALVES):
            print_fitted(name, cases)
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
