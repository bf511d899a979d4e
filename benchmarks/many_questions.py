"""Time of `retrieve_many` for eight questions over that of eight single calls, in turn, over the shipped own set.

python -m benchmarks.many_questions
"""

import time
from statistics import median

from meve import Retriever
from meve.evaluation.datasets import read_own

EIGHT = 8


def main() -> None:
    """Print the ratio for each sixteen questions; none is asked twice, since scores are cached."""
    own = read_own()
    retriever = Retriever.from_passages(own.passages)
    questions = [question.text for question in own.questions]
    retriever.retrieve("warm up")
    ratios = []
    for at in range(0, len(questions) - 2 * EIGHT + 1, 2 * EIGHT):
        moments = [time.perf_counter()]
        for question in questions[at : at + EIGHT]:
            retriever.retrieve(question)
        moments.append(time.perf_counter())
        retriever.retrieve_many(questions[at + EIGHT : at + 2 * EIGHT])
        moments.append(time.perf_counter())
        ratios.append((moments[2] - moments[1]) / (moments[1] - moments[0]))
        print(f"{ratios[-1]:.2f}", flush=True)
    print(f"median {median(ratios):.2f}")


if __name__ == "__main__":
    main()
