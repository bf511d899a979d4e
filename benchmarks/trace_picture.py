"""Draw the trace of a small retrieval as `docs/images/trace.svg`: `python -m benchmarks.trace_picture`."""

from pathlib import Path

from meve import Retriever

TEXTS = [
    "Tomatoes want six to eight hours of sun a day.",
    "Water tomatoes two or three times a week, at the root.",
    "Basil likes warmth and moist soil.",
    "Prune side shoots of tomatoes weekly.",
    "Tomatoes need full sun, six to eight hours each day.",
    "The match ended two to one.",
    "Peppers want sun as well.",
    "Feed tomatoes every two weeks once fruit sets.",
]
FILE = Path("docs/images/trace.svg")


def main() -> None:
    retriever = Retriever.from_texts(TEXTS, ids=TEXTS)
    FILE.write_text(retriever.retrieve("How much sun do tomatoes want?", max_tokens=40).trace.to_svg())


if __name__ == "__main__":
    main()
