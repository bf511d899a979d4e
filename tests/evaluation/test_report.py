"""Reports: stars, and recall at equal tokens."""

import re

from meve.evaluation.report.markdown import format_report
from meve.evaluation.results import Cell, CurvePoint, Difference, Results
from meve.evaluation.statistics import Interval

ABOUT = {"questions": 40, "of": 40, "answerable": 40, "closed": False, "passages": 9, "fingerprint": "x"}
SETTINGS = {
    "versions": {}, "config": {"threshold": 0.5, "max_tokens": 512}, "embedder": "e", "verifier": "v", "weights": "w",
    "tokens": "t", "seed": 1, "cores": 2, "threads": 2,
}  # fmt: skip


def cell(system, values):
    named = {f"q{n:02}": v for n, v in enumerate(values)}
    mean = sum(values) / len(values)
    return Cell(
        set="s", system=system, measure="supporting recall", values=named,
        interval=Interval(value=mean, low=mean, high=mean, n=len(values)),
    )  # fmt: skip


def test_stars_refer_to_the_questions_shown():
    full, dense, peer = [1.0] * 12 + [0.0] * 28, [1.0] * 40, [0.0] * 12
    gap = Interval(value=0.7, low=0.6, high=0.8, n=40)
    results = Results(
        experiment="quality", settings=SETTINGS, sets={"s": ABOUT},
        cells=(cell("full", full), cell("dense", dense), cell("peer", peer)),
        differences=(
            Difference(set="s", system="dense", against="full", measure="supporting recall", interval=gap),
            Difference(set="s", system="peer", against="full", measure="supporting recall", interval=gap),
        ),
    )  # fmt: skip
    whole, shared = format_report(results, "command", []).split("The peers were asked fewer questions")
    starred = [re.findall(r"^\| (\w+) \| [\d.]+\*", part, flags=re.MULTILINE) for part in (whole, shared)]
    assert starred == [["dense"], ["peer"]]


def test_recall_at_equal_tokens_is_interpolated():
    def point(system, tokens, recall, threshold=None, budget=128):
        return CurvePoint(
            set="s", system=system, threshold=threshold, max_tokens=budget, recall=recall, complete=0, tokens=tokens,
            n=9,
        )  # fmt: skip

    curve = (
        point("full", 100, 0.7, 0.5, 512), point("full", 60, 0.9, 0.9, 512), point("dense", 50, 0.2),
        point("dense", 150, 0.6, budget=256), point("bm25", 120, 0.5),
    )  # fmt: skip
    results = Results(experiment="quality", settings=SETTINGS, sets={"s": ABOUT}, cells=(), curve=curve)
    assert "| s | 100 | 0.700 | 0.400 |  |  |" in format_report(results, "command", [])
