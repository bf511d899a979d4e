"""Fits the shipped calibration of the cosine of all-MiniLM-L6-v2 (minilm_cosine.json in meve/components/verifiers).

A calibration learns the share of relevant candidates, so the sample imitates the top of a retrieval, where most are
irrelevant. Each query has its one positive and up to 8 negatives. These are up to 2 that came with the source, the 3
passages of the same set closest to the query (of up to 100 drawn, other groups only), and random passages of other
groups. A corpus with more relevant passages per query would deserve higher probabilities.

`sgd_memory` and `persona_chat_synthetic` get no mined negatives, since another person's statement also answers: only
the given ones, and random rows of other queries. Unanswerable questions come with the passage that fails to answer
them. Some mined negatives answer nevertheless (nobody judged them), which makes the probabilities a little too low.

    python benchmarks/fit_cosine_calibration.py --data DATA/train --check DATA/hotpotqa

The stated error is that of whole groups (pages, documents, dialogues) that are held out; the final fit uses all.
"""

import argparse
import gzip
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from meve._formulas import expected_calibration_error
from meve.calibration.fitting import Method, fit_calibration
from meve.calibration.probability_maps import AnyCalibration
from meve.calibration.thresholds import area_under_curve
from meve.components.embedders.minilm import load_minilm
from meve.ports import Embedder
from meve.types import FloatArray

NO_MINING = ("sgd_memory", "persona_chat_synthetic")
GIVEN, MINED, NEGATIVES = 2, 3, 8
HELD_OUT_PERCENT = 20
SHIPPED = Path(__file__).parents[1] / "core" / "meve" / "components" / "verifiers" / "minilm_cosine.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Cosines of pairs, their labels, and which pairs belong to groups kept out of the trial fit."""

    cosine: FloatArray
    relevant: np.ndarray
    held: np.ndarray


def read_training_rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a set."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def draw_rows(rows: Sequence[dict[str, Any]], cap: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return at most `cap` rows, no query twice."""
    chosen: dict[str, dict[str, Any]] = {}
    for i in rng.permutation(len(rows)):
        chosen.setdefault(rows[i]["query"].strip().lower(), rows[i])
        if len(chosen) == cap:
            break
    return list(chosen.values())


def is_held(row: dict[str, Any]) -> bool:
    """Return whether the row's group is held out; its name alone decides, so the split never changes."""
    digest = hashlib.sha256(f"{row['source']}/{row['group']}".encode()).digest()
    return digest[0] * 100 < HELD_OUT_PERCENT * 256


def negatives_of(
    row: dict[str, Any], rows: Sequence[dict[str, Any]], cosines: FloatArray, rng: np.random.Generator
) -> Iterator[int]:
    """Yield rows whose positive is a negative of this one: the closest first, then random ones."""
    mining = row["source"] not in NO_MINING
    allowed = [
        i
        for i, other in enumerate(rows)
        if other["positive"]
        and other["positive"] != row["positive"]
        and (other["group"] != row["group"] if mining else other["query"] != row["query"])
    ]
    if mining:
        closest = sorted(allowed, key=lambda i: -cosines[i])[:MINED]
        yield from closest
        allowed = [i for i in allowed if i not in closest]
    yield from rng.permutation(allowed).tolist()


def score_set(
    rows: list[dict[str, Any]], embedder: Embedder, rng: np.random.Generator
) -> list[tuple[float, bool, bool]]:
    """Return (cosine, relevant, held) for the positives and negatives of a set's rows."""
    queries = np.stack([embedder.embed_query(row["query"]) for row in rows])
    positives = embedder.embed_passages([row["positive"] or "-" for row in rows])
    given = [row["negatives"][:GIVEN] for row in rows]
    negatives = iter(embedder.embed_passages([text for texts in given for text in texts]))
    cosines = np.asarray(queries @ positives.T, dtype=np.float32)
    scored: list[tuple[float, bool, bool]] = []
    for i, row in enumerate(rows):
        held_out = is_held(row)
        if row["positive"]:
            scored.append((float(cosines[i, i]), True, held_out))
        own = [float(queries[i] @ next(negatives)) for _ in given[i]]
        scored += [(cosine, False, held_out) for cosine in own]
        if row["positive"]:
            for j, _ in zip(negatives_of(row, rows, cosines[i], rng), range(NEGATIVES - len(own)), strict=False):
                scored.append((float(cosines[i, j]), False, held_out))
    return scored


def score_sets(data: Path, cap: int, embedder: Embedder, seed: int) -> tuple[Scored, int, int]:
    """Return every set's pairs, and the numbers of queries and sets."""
    rng = np.random.default_rng(seed)
    scored: list[tuple[float, bool, bool]] = []
    files = sorted([*data.glob("*.jsonl.gz"), *data.glob("negonly/*.jsonl.gz")])
    queries = 0
    for file in files:
        started = time.monotonic()
        rows = draw_rows(read_training_rows(file), cap, rng)
        pairs = score_set(rows, embedder, rng)
        scored += pairs
        queries += len(rows)
        auc = (
            area_under_curve([p[0] for p in pairs], [p[1] for p in pairs]) if any(p[1] for p in pairs) else float("nan")
        )
        took = time.monotonic() - started
        print(f"{file.name:40} {len(rows):4} queries {len(pairs):5} pairs  AUC {auc:.3f}  {took:.0f} s", flush=True)
    cosine, relevant, held_out = zip(*scored, strict=True)
    return (
        Scored(cosine=np.asarray(cosine, np.float32), relevant=np.asarray(relevant), held=np.asarray(held_out)),
        queries,
        len(files),
    )


def held_out_error(scored: Scored, method: Method) -> float:
    """Return the expected calibration error, on the held-out groups, of a fit to the others."""
    fit = fit_calibration(scored.cosine[~scored.held], scored.relevant[~scored.held], method=method)
    p, y = fit.apply(scored.cosine[scored.held]).astype(np.float64), scored.relevant[scored.held]
    error = expected_calibration_error(p, y)
    loss = float(-np.mean(np.log(np.clip(np.where(y, p, 1 - p), 1e-6, 1))))
    print(f"{method:8} held-out groups ({y.size} pairs): ECE {error:.4f}, log loss {loss:.4f}")
    return error


def check(folder: Path, embedder: Embedder, calibration: AnyCalibration) -> None:
    """Check the calibration on unseen questions: gold passages against the distractors that came with them."""
    with gzip.open(folder / "passages.jsonl.gz", "rt", encoding="utf-8") as lines:
        passages = {row["id"]: f"{row['title']}\n{row['text']}" for row in map(json.loads, lines)}
    questions = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()[:100]
    cosines, labels = [], []
    for question in map(json.loads, questions):
        ids = question["context_passage_ids"]
        vectors = embedder.embed_passages([passages[i] for i in ids])
        cosines.append(vectors @ embedder.embed_query(question["question"]))
        labels += [i in question["gold_passage_ids"] for i in ids]
    cosine, y = np.concatenate(cosines), np.asarray(labels)
    p = calibration.apply(cosine)
    print(
        f"{folder.name}: {len(questions)} questions, {y.size} pairs, {y.mean():.1%} relevant, "
        f"AUC {area_under_curve(cosine, y):.3f}, ECE {expected_calibration_error(p, y):.4f}, mean p {p.mean():.3f}"
    )
    for low, high in zip(np.arange(0, 1, 0.2), np.arange(0.2, 1.2, 0.2), strict=True):
        rows = (p >= low) & (p < high + 1e-9)
        if rows.any():
            print(f"  p in [{low:.1f}, {high:.1f}): {rows.sum():4} pairs, {y[rows].mean():.3f} relevant")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of training sets")
    parser.add_argument("--check", type=Path, help="a folder of questions with gold passages, such as hotpotqa")
    parser.add_argument("--cap", type=int, default=100, help="queries of a set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    args = parser.parse_args()
    embedder = load_minilm()
    scored, queries, sets = score_sets(args.data, args.cap, embedder, args.seed)
    errors = {method: held_out_error(scored, method) for method in ("platt", "isotonic")}
    ratio = float((~scored.relevant).sum() / scored.relevant.sum())
    fitted_on = (
        f"all-MiniLM-L6-v2, {queries} queries of {sets} public sets (at most {args.cap} each), seed {args.seed}; "
        f"1 positive to {ratio:.1f} negatives: given, closest of the set ({MINED} a query), random; "
        f"error on held-out groups; made by benchmarks/fit_cosine_calibration.py"
    )
    fit = fit_calibration(scored.cosine, scored.relevant, fitted_on=fitted_on, seed=args.seed)
    fit = replace(fit, error=round(errors["platt"], 4))  # Platt: an isotonic fit has flats, which would lose the order
    args.out.write_text(json.dumps(fit.to_dict(), indent=2) + "\n", encoding="utf-8")
    grid = np.linspace(-1, 1, 20_001, dtype=np.float32)
    for p in (0.1, 0.25, 0.5, 0.75, 0.9):
        print(f"p = {p}: cosine {grid[np.searchsorted(fit.apply(grid), p).clip(0, grid.size - 1)]:.3f}")
    print(f"all: {scored.relevant.size} pairs, {scored.relevant.mean():.1%} relevant, AUC "
          f"{area_under_curve(scored.cosine, scored.relevant):.3f}; wrote {args.out.name}")  # fmt: skip
    if args.check:
        check(args.check, embedder, fit)


if __name__ == "__main__":
    main()
