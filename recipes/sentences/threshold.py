"""Shows what sentence packing keeps at several thresholds, to choose the default of `sentence_threshold`.

    python -m recipes.sentences.threshold --data DATA

Asks the questions of HotpotQA and 2WikiMultihopQA that neither the verifier's training nor `meve bench` uses: the share
of the gold sentences in the context, and its tokens.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from meve import Retriever
from meve.evaluation.datasets import read_set
from meve.evaluation.measures.gold_passages import has_sentences
from meve.evaluation.types import normalize_space
from meve.pipeline.config import Overrides
from recipes.verifier.splits import unseen

THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)


def main() -> None:
    """Measure each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    settings: dict[str, Overrides] = {"passages": {}}
    settings |= {f"{t}": {"packing": "sentences", "sentence_threshold": t} for t in THRESHOLDS}
    for name in ("hotpotqa", "2wiki"):
        chosen = read_set(name, given.data)
        retriever = Retriever.from_passages(chosen.passages)
        kept: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        for question in unseen(chosen, given.data):
            if not has_sentences(question):
                continue
            for label, overrides in settings.items():
                context = retriever.retrieve(question.text, **overrides)
                text = normalize_space(context.text)
                found = [normalize_space(sentence.text) in text for sentence in question.sentences]
                kept[label].append((float(np.mean(found)), context.tokens))
        for label, values in kept.items():
            recall, tokens = np.mean(values, axis=0)
            print(f"{name}, {len(values)} questions, {label}: sentence recall {recall:.3f}, {tokens:.0f} tokens")


if __name__ == "__main__":
    main()
