"""The updates experiment with a language model of this machine as the judge of maintenance.

python -m benchmarks.updates_by_llm FOLDER [--pairs 80]
"""

import argparse
from collections import Counter
from functools import partial

from meve.components.embedders import ACCURATE, resolve_embedder
from meve.components.llms.local import TransformersLanguageModel
from meve.components.tokenizers import resolve_tokens
from meve.evaluation.experiments.memory.environment import Environment, Sizes
from meve.evaluation.experiments.memory.updates import run_updates
from meve.memory import GovernedMemory, LlmUpdateJudge


def main() -> None:
    """Print the share of pairs of each kind and half, and the model's most frequent answers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="the name or the folder of a causal model of transformers")
    parser.add_argument("--pairs", type=int, default=80, help="the most pairs of each kind and half")
    options = parser.parse_args()
    model = TransformersLanguageModel.from_name(options.model, max_tokens=8)
    answers: Counter[str] = Counter()

    def complete(prompt: str) -> str:
        answer = model(prompt)
        answers[answer[:40]] += 1
        return answer

    environment = Environment(
        embedder=resolve_embedder(ACCURATE),
        tokens=resolve_tokens(None),
        sizes=Sizes(pairs=options.pairs),
        open_memory=partial(GovernedMemory.open, updates=LlmUpdateJudge(complete)),
    )
    for figure in run_updates(environment, lambda *_: print(answers.total(), "answers", flush=True)).figures():
        value = figure.interval
        print(f"{figure.system}, {figure.measure}: {value.value:.3f} [{value.low:.3f}, {value.high:.3f}]")
    print(answers.total(), "answers:", answers.most_common(8))


if __name__ == "__main__":
    main()
