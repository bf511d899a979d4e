"""Measures verdicts on near misses, answers among other texts, and retrieval from manuals: see README.md beside it."""

import argparse
import json
from hashlib import sha1
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from meve import Passage, Retriever
from meve._formulas import expected_calibration_error
from meve.components.verifiers import load_verifier
from meve.evaluation.systems import SYSTEMS, IndexedPassages
from meve.evaluation.types import SharedComponents
from meve.ingest import ingest
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.engine import make_engine

HERE = Path(__file__).parent
THRESHOLD = 0.5
UNRELATED_WORDS = 80
PLAIN = ("dense", "bm25", "hybrid")
"""Searches of `meve.evaluation.systems` that fill the budget with their best passages, unverified."""
LIMITS = (400, 512, 1024)
LEAST_ESTIMATES = (0.41, 0.42, 0.43, 0.45, 0.48)
"""Thresholds of sufficiency to compare."""
GRADES = ("answers", "partly", "not")
Rows = list[dict[str, Any]]


def main() -> None:
    """Measure what is asked for, each half apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["near-misses", "surroundings", "handbooks", "manuals", "candidates"])
    parser.add_argument("--manuals", type=Path, help="the folder of the manuals")
    parser.add_argument("--embedder")
    parser.add_argument("--verifier")
    given = parser.parse_args()
    if given.what == "near-misses":
        measure_near_misses(given.verifier, given.embedder)
    elif given.what == "surroundings":
        measure_surroundings(given.verifier)
    elif given.what == "handbooks":
        measure_handbooks(given.embedder, given.verifier)
    elif given.what == "candidates":
        measure_candidates(given.manuals, given.embedder, given.verifier)
    else:
        measure_manuals(given.manuals, given.embedder, given.verifier)


def measure_near_misses(name: str | None, embedder: str | None) -> None:
    """Print the area under the curve, and which shares of near misses and answers reach the threshold.

    With an embedder, the verdict weighs its vectors too, as in a retriever; else the verifier decides alone.
    """
    rows = read_rows("near_misses.jsonl")
    if embedder is None:
        verifier = load_verifier(name)
        scores = np.array([verifier.score(row["question"], [row["passage"]])[0] for row in rows])
    else:
        engine = make_engine(verifier=name, embedder=embedder)
        given = [(row["question"], [Passage(id="p", text=row["passage"])]) for row in rows]
        traces = [engine.select(*each, exact=True).trace for each in given]
        scores = np.array([trace.candidates[0].scores["verifier"] for trace in traces])
    labels = np.array([row["label"] == 1 for row in rows])
    for half in ("dev", "test"):
        chosen = np.array([row["half"] == half for row in rows])
        s, y = scores[chosen], labels[chosen]
        print(f"{half}: AUC {roc_auc_score(y, s):.3f}, near misses verified {(s[~y] >= THRESHOLD).mean():.2f}, "
              f"answers verified {(s[y] >= THRESHOLD).mean():.2f}")  # fmt: skip


def measure_surroundings(name: str | None) -> None:
    """Print how far the probability of an answer falls when 80 words of other texts stand before it."""
    verifier, rows = load_verifier(name), [row for row in read_rows("near_misses.jsonl") if row["label"] == 1]
    falls = []
    for n, row in enumerate(rows):
        others = " ".join(other["passage"] for other in rows[n + 1 :] + rows[:n])
        before = " ".join(others.split()[:UNRELATED_WORDS])
        alone, among = verifier.score(row["question"], [row["passage"], f"{before} {row['passage']}"])
        falls.append(float(alone - among))
    low, median, high = np.quantile(falls, [0.25, 0.5, 0.75])
    print(
        f"{len(falls)} answers: the probability falls by {median:.3f} in the median, quartiles {low:.3f} and {high:.3f}"
    )


def measure_handbooks(embedder: str | None, verifier: str | None) -> None:
    """Print how often the gold passage is verified and comes first, and whether its quote outlasts sentence packing.

    The area under the curve is the verifier's alone, over every answerable question with every passage. Texts of each
    folder are a corpus of their own; `plain` has lists in plain text and reStructuredText.
    """
    folder, rows = HERE / "handbooks", read_rows("handbooks.jsonl")
    for half in ("dev", "test", "plain"):
        retriever = Retriever.empty(embedder=embedder, verifier=verifier)
        ingest(folder / half, retriever)
        results = [(row, retriever.retrieve(row["question"])) for row in rows if row["half"] == half]
        answerable = [(row["quote"], row["question"], c.passages) for row, c in results if row["quote"]]
        others = [context for row, context in results if not row["quote"]]
        gold = [[quote in p.passage.content for p in passages] for quote, _, passages in answerable]
        verified = sum(
            any(g and p.verified for g, p in zip(own, passages, strict=True))
            for own, (_, _, passages) in zip(gold, answerable, strict=True)
        )
        texts = [passage.content for passage in retriever.passages()]
        scores = [retriever.verifier.score(question, texts) for _, question, _ in answerable]
        relevant = [[quote in text for text in texts] for quote, _, _ in answerable]
        area = roc_auc_score(np.ravel(relevant), np.ravel(scores))
        nearest = [
            (quote, retriever.retrieve(question, mode="standard_rag", sources="dense", limit=1))
            for quote, question, _ in answerable
        ]
        print(f"{half}: {len(gold)} answerable, gold in context {sum(map(any, gold))}, verified {verified}, first "
              f"{sum(own[:1] == [True] for own in gold)} (by vectors alone {sum(q in c.text for q, c in nearest)}), "
              f"called sufficient {sum(c.sufficient for row, c in results if row['quote'])}; of {len(others)} others "
              f"with a verified passage {sum(any(p.verified for p in c.passages) for c in others)}, called sufficient "
              f"{sum(c.sufficient for c in others)}; AUC of all pairs {area:.3f}")  # fmt: skip
        packed = [(quote, retriever.retrieve(question, packing="sentences")) for quote, question, _ in answerable]
        kept = [" ".join(quote.split()) in " ".join(c.text.split()) for quote, c in packed]
        lost = sum(c.sufficient and not found for (_, c), found in zip(packed, kept, strict=True))
        print(f"{half}, packed by sentences: quote in context {sum(kept)}, called sufficient without it {lost}, "
              f"mean tokens {np.mean([c.tokens for _, c in packed]):.0f}")  # fmt: skip


def read_manuals(folder: Path, embedder: str | None, verifier: str | None) -> Retriever:
    """Return a retriever over the manuals."""
    retriever = Retriever.empty(embedder=embedder, verifier=verifier)
    ingest(folder, retriever)
    print(f"{len(retriever.passages()):,} passages")
    return retriever


def measure_candidates(folder: Path, embedder: str | None, verifier: str | None) -> None:
    """Print areas under the curve and calibration errors over all candidates of every second question.

    They are printed twice: a relevant candidate holds a quote, or somebody who read it found that it answers. The last
    error is that of the chance p / (8 - 7p): the fit of the evidence counts a relevant candidate eight times.
    """
    retriever = read_manuals(folder, embedder, verifier)
    judged = {row["id"]: row for row in read_rows("judged.jsonl")}
    scores, labels, answers, read = [], [], [], 0
    for row in read_rows("questions.jsonl")[::2]:
        if not row["answerable"] or "definition" in row:
            continue
        trace = retriever.retrieve(row["question"], exact=True, redundancy=1.0, mode="no_fallback").trace
        scores += [(c.scores["verifier"], c.scores.get("logit", c.scores["verifier"])) for c in trace.candidates]
        labels += [is_gold(retriever.get(c.id), row) for c in trace.candidates]
        digests = [sha1(retriever.get(c.id).text.encode()).hexdigest()[:10] for c in trace.candidates]
        answers += [digest in judged[row["id"]]["answers"] for digest in digests]
        read += sum(any(digest in judged[row["id"]][grade] for grade in GRADES) for digest in digests)
    p, logits = np.array(scores, dtype=np.float32).T
    for name, relevant in (("by quotes", labels), (f"by reading ({read:,} read)", answers)):
        y = np.array(relevant)
        both, alone = roc_auc_score(y, p), roc_auc_score(y, logits)
        weighted, chance = (expected_calibration_error(each, y) for each in (p, p / (8 - 7 * p)))
        print(f"{name}: {len(y):,} candidates, {y.sum()} relevant: AUC {both:.3f}, verifier alone {alone:.3f}; "
              f"calibration error {weighted:.3f}, without the weight {chance:.3f}")  # fmt: skip


def measure_manuals(folder: Path, embedder: str | None, verifier: str | None) -> None:
    """Print how many questions have a gold passage in their context, and how many contexts are called sufficient."""
    retriever = read_manuals(folder, embedder, verifier)
    rows = read_rows("questions.jsonl")
    results = [(row, retriever.retrieve(row["question"])) for row in rows]
    for name, chosen in {
        "dev": [r for r in results if r[0]["half"] == "dev" and "definition" not in r[0]],
        "test": [r for r in results if r[0]["half"] == "test"],
        "definitions": [r for r in results if "definition" in r[0]],
    }.items():
        answerable = [(row, context) for row, context in chosen if row["answerable"]]
        others = [context for row, context in chosen if not row["answerable"]]
        gold = [[p.verified for p in context.passages if is_gold(p.passage, row)] for row, context in answerable]
        hits, verified = sum(map(bool, gold)), sum(map(any, gold))
        sufficient = sum(context.sufficient for _, context in answerable)
        tokens = np.mean([context.tokens for _, context in answerable])
        print(f"{name}: {len(answerable)} answerable, gold in context {hits}, verified {verified}, called sufficient "
              f"{sufficient}, mean tokens {tokens:.0f}; of {len(others)} unanswerable called sufficient "
              f"{sum(context.sufficient for context in others)}")  # fmt: skip
    for least in LEAST_ESTIMATES:
        reached = [
            (row, c) for row, c in results if (c.sufficiency or 0) >= least and any(p.verified for p in c.passages)
        ]
        answerable = sum(row["answerable"] and "definition" not in row for row, _ in reached)
        others = sum(not row["answerable"] for row, _ in reached)
        print(f"threshold {least}: contexts called sufficient, of {answerable} answerable, {others} other questions")
    compare_with_plain(retriever, [row for row in rows if row["answerable"] and "definition" not in row])


def compare_with_plain(retriever: Retriever, rows: Rows) -> None:
    """Print how many contexts hold a gold passage, for several budgets: of the default, and of plain searches.

    A plain search gets for each question as many tokens as the default's context took.
    """
    engine = retriever.engine
    shared = SharedComponents(embedder=engine.embedder, verifier=engine.verifier, tokens=engine.tokens)
    indexed = IndexedPassages(retriever.passages(), shared)
    indexed.__dict__["retriever"] = retriever  # the passages are embedded already
    for limit in LIMITS:
        contexts = [retriever.retrieve(row["question"], max_tokens=limit) for row in rows]
        found = {"default": [([p.passage for p in c.passages], c.tokens) for c in contexts]}
        for name in PLAIN:
            configs = [RetrieverConfig(max_tokens=max(c.tokens, 1)) for c in contexts]
            outputs = [
                SYSTEMS[name](indexed.with_config(config))(row["question"])
                for row, config in zip(rows, configs, strict=True)
            ]
            found[name] = [([retriever.get(p.id) for p in o.passages], o.tokens) for o in outputs]
        for name, results in found.items():
            hits = [any(is_gold(p, row) for p in passages) for row, (passages, _) in zip(rows, results, strict=True)]
            tokens = np.mean([count for _, count in results])
            print(f"max_tokens={limit}, {name}: gold in context {sum(hits)} of {len(rows)}, mean tokens {tokens:.0f}")


def is_gold(passage: Passage, row: dict[str, Any]) -> bool:
    """Return whether a passage is of an evidence's source and holds its quote."""
    source = str(passage.metadata.get("source", passage.id))
    return any(
        f"{row['project']}/{evidence['source']}" in source and evidence["quote"] in passage.content
        for evidence in row["evidence"]
    )


def read_rows(name: str) -> Rows:
    """Return the rows of a file beside this one."""
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
