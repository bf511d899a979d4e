"""Fit the weights of `Ranking.chat_room()` on one half of two sets of chats, and test them on the other half.

python benchmarks/fit_ranking.py --data DATA
"""

import argparse
from pathlib import Path

import numpy as np

from meve.components.embedders import FAST, resolve_embedder
from meve.components.embedders.cached import CachedEmbedder
from meve.conversation.ranking import FEATURES, Ranking
from meve.evaluation.experiments.trajectory.experiment import (
    SINGLE,
    TrajectoryOptions,
    draw_halves,
    fit_weights,
    reciprocal_rank,
)
from meve.evaluation.experiments.trajectory.reply_trees import read_reply_trees
from meve.evaluation.statistics import paired_difference

SETS = ("irc", "molweni")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = TrajectoryOptions(data=parser.parse_args().data, sets=SETS)
    embedder = CachedEmbedder(resolve_embedder(None, default=FAST), cache_size=20_000)
    halves = {name: draw_halves(read_reply_trees(options.data, name), "parent", options, embedder) for name in SETS}
    names = [name for name in FEATURES if name != "outcome"]
    fitted = fit_weights([case for name in SETS for case in halves[name][0]], names, options.seed)
    total = sum(map(abs, fitted.values()))
    print("fitted: ", {name: round(weight / total, 2) for name, weight in fitted.items()})
    preset = Ranking.chat_room()
    shipped = {name: getattr(preset, name) for name in names}
    print("shipped:", shipped)
    for name in SETS:
        cases = halves[name][1]
        ours = np.array([reciprocal_rank(case, shipped) for case in cases])
        for system, feature in SINGLE.items():
            theirs = np.array([reciprocal_rank(case, {feature: 1.0}) for case in cases])
            gain = paired_difference(theirs.tolist(), ours.tolist(), seed=options.seed)
            print(f"{name}: {ours.mean():.3f}, {system} {theirs.mean():.3f}, difference {gain}")


if __name__ == "__main__":
    main()
