"""Precision and recall of the facts that rules extract from turns, by hand-made labels; false alarms about secrets.

    python benchmarks/memory/extraction.py --data DATA

`extraction.jsonl` names 300 turns of LoCoMo and sgd_memory, drawn at random, and the characters of the sentences to
keep. One person labelled them. Kept is what tells something of the speaker or of his people and things: what they are,
have, like, want, plan or did. Left out are questions, commands, reactions, general truths, and what means nothing
without the turns before.
"""

import argparse
import gzip
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from meve.components._sentence_splitter import split_sentences
from meve.memory import PatternSecretDetector
from meve.memory._classify.fact_extraction import extract_statements

LABELS = Path(__file__).with_name("extraction.jsonl")


def main() -> None:
    """Print precision and recall for each set and half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    data = parser.parse_args().data
    texts = {"locomo": _read_locomo(data), "sgd_memory": _read_sgd(data)}
    counts: dict[tuple[str, str], Counter[tuple[bool, bool]]] = {}
    for line in LABELS.read_text().splitlines():
        label = json.loads(line)
        text = texts[label["set"]][_key(label)]
        counts.setdefault((label["set"], label["half"]), Counter()).update(_compare(text, label["keep"]))
    for (name, half), count in sorted(counts.items()):
        right, extra, missed = count[True, True], count[False, True], count[True, False]
        precision, recall = right / (right + extra), right / (right + missed)
        print(f"{name} {half}: precision {precision:.3f}, recall {recall:.3f} of {right + missed} sentences")
    turns, detector = [text for by_id in texts.values() for text in by_id.values()], PatternSecretDetector()
    print(f"taken for secrets: {sum(bool(detector.find_secret(text)) for text in turns)} of {len(turns):,} turns")


def _compare(text: str, keep: list[list[int]]) -> list[tuple[bool, bool]]:
    """Return for each sentence of a turn whether it is labelled, and whether the rules keep it or its beginning."""
    labelled = {text[begin:end] for begin, end in keep}
    kept = extract_statements(text)
    sentences = [each for line in text.splitlines() for each in split_sentences(line)]
    return [(s in labelled, any(s in fact or fact.rstrip(".") in s for fact in kept)) for s in sentences]


def _key(label: dict[str, Any]) -> tuple[str, str]:
    return (label["conversation"], label["turn"]) if label["set"] == "locomo" else (label["group"], label["sha256"])


def _read_locomo(data: Path) -> dict[tuple[str, str], str]:
    conversations = map(json.loads, (data / "locomo" / "conversations.jsonl").read_text().splitlines())
    return {
        (each["conversation_id"], turn["dia_id"]): turn["text"]
        for each in conversations
        for session in each["sessions"]
        for turn in session["turns"]
    }


def _read_sgd(data: Path) -> dict[tuple[str, str], str]:
    with gzip.open(data / "train" / "sgd_memory.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    texts = ((row["group"], text) for row in rows for text in (row["positive"], *row["negatives"]))
    return {(group, hashlib.sha256(text.encode()).hexdigest()[:16]): text for group, text in texts}


if __name__ == "__main__":
    main()
