"""Writes the model card of the verifier that ships, from what `test` measured.

    python -m recipes.verifier.card --figures FIGURES.json --work WORK --folder FOLDER

FIGURES.json is what `test` wrote of two verifiers, FOLDER's and `cosine`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from meve.calibration.maps import calibration_from_dict
from recipes.verifier.splits import SEED
from recipes.verifier.train import AGAIN, FIRST, OTHERS, SECOND, THIRD

CARD = """---
license: apache-2.0
language: [en]
library_name: onnxruntime
pipeline_tag: text-ranking
base_model: sentence-transformers/all-MiniLM-L6-v2
---

# meve-verifier-1

A cross-encoder for English: reads a question and a passage together, and says how likely it is that the passage answers
the question or is evidence for the answer. 6 layers of 384, 384 tokens at once, weights of eight bits, {size:.1f} MB.
It runs on ONNX Runtime, on a CPU, without torch and without a network.

Licence: Apache-2.0. What it was made from, and under which licences, stands in the project's NOTICE.

## How it was made

1. `python -m recipes.verifier.mixture` (seed 42) makes the pairs: questions of HotpotQA, 2WikiMultihopQA and NQ-open
   with their gold passages, their own distractors and the hardest BM25 hits that aren't gold; the same with the
   beginning of the other gold passage beside the question (the second hop); single sentences; and 25 sets more of
   questions, headings and statements with their passages, questions that their passage doesn't answer among them.
2. `python -m recipes.verifier.train` trains all-MiniLM-L6-v2 (Apache-2.0) with a new head by cross-entropy, up to
   {length} tokens a pair, in three stages of one pass each (seed {seed}). The first: {first:,} pairs of all sets,
   HotpotQA's paragraphs and second hops twice among them, 2WikiMultihopQA's paragraphs three times and second hops
   twice, in batches of {first_batch} with a learning rate of {first_rate:g}. The second: every pair of HotpotQA
   {hotpotqa} times, of 2WikiMultihopQA {wiki} times, of NQ-open once, and {others:,} more of the other sets,
   {second:,} in all, in batches of {second_batch} with {second_rate:g}, without dropout. The third: questions made of
   2WikiMultihopQA's passages by patterns (`recipes/verifier/chains.py`), claims that are sentences of abstracts and
   sections held against the rest of them (`recipes/verifier/claims.py`), and some of all the rest, {third:,} in all,
   in batches of {second_batch} with {third_rate:g}, without dropout. What ships is the mean of the second's weights and
   the third's (Wortsman et al. 2022).
3. `python -m recipes.verifier.ship` exports it to ONNX, quantises its weights to eight bits, and fits a Platt
   calibration on {fitted:,} pairs kept out of training, of all sets together (expected calibration error on those kept
   out of the fit: {error:.3f}).

Kept out of training were the questions that `meve bench` asks by default, a tenth of the pages, documents or dialogues
of every other set, and whole sets: SciFact, NFCorpus, MuSiQue, HotpotQA's fullwiki contexts, RGB.

## How well it does

`python -m recipes.verifier.test --work WORK --verifier FOLDER --verifier cosine --questions {most}`, on what was kept
out: AUC over all pairs with its 95 % interval (questions drawn anew), and the expected calibration error (15 bins).
Beside it the AUC of the cosine of all-MiniLM-L6-v2. Held against the gold passages (of NFCorpus at most eight a
question) are the eight best BM25 hits that aren't gold, a set's own distractors first; in a `second hop`, the question
with the first 60 words of another gold passage, four of them; in the sets that come as pairs, three and more. Sets of
which only questions without an answer were kept out have no row.

| set | questions | pairs | AUC | calibration error | cosine: AUC |
|---|---|---|---|---|---|
{rows}

Sets of fewer than a hundred pairs say little by themselves. The cosine is ahead on:

{behind}

To the third digit they are level on {level}.

On NFCorpus both are below 0.5: many of its gold documents share fewer words with the query than the BM25 hits that they
are held against. Probabilities are too sure or too shy by 0.1 and more on {off} of the {count} rows, small sets and
sets kept out whole most of all: `meve calibrate` fits them to yours.

## What it is for

Judging the candidates of a retrieval, whole passages or sentences under their title. Passages longer than its window
are read by overlapping stretches, of which the best counts. It knows no language but English; it judges whether a text
answers, not whether what it says is true; a question that needs several passages is judged better with the first one
beside it (`hops=2`).
"""


def main() -> None:
    """Write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="the folder that it was trained in")
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    figures = json.loads(given.figures.read_text("utf-8"))
    stored = json.loads((given.folder / "calibration.json").read_text("utf-8"))["calibration"]
    calibration = calibration_from_dict(stored)
    pairs = [json.loads((given.work / f"stage-{n}" / "training.json").read_text("utf-8"))["pairs"] for n in (1, 2, 3)]
    size = sum(f.stat().st_size for f in given.folder.rglob("*") if f.is_file() and f.name != "README.md")
    card = CARD.format(
        size=size / 1e6,
        length=FIRST.max_length,
        first=pairs[0],
        first_batch=FIRST.batch_size,
        first_rate=FIRST.learning_rate,
        hotpotqa=AGAIN["hotpotqa"],
        wiki=AGAIN["2wiki"],
        others=OTHERS,
        second=pairs[1],
        second_batch=SECOND.batch_size,
        second_rate=SECOND.learning_rate,
        third=pairs[2],
        off=sum(ours_of(found)["error"] >= 0.1 for found in figures.values()),
        count=len(figures),
        third_rate=THIRD.learning_rate,
        seed=SEED,
        most=max(value["auc"]["n"] for found in figures.values() for value in found.values()),
        fitted=calibration.to_dict()["pairs"],
        error=calibration.to_dict()["error"],
        behind="\n".join(f"- {name}" for name, found in sorted(figures.items()) if ahead(found)) or "none of them.",
        level=" and ".join(name for name, found in sorted(figures.items()) if level(found)) or "no set",
        rows="\n".join(row(name, found) for name, found in sorted(figures.items())),
    )
    (given.folder / "README.md").write_text(card, "utf-8")


def ours_of(found: dict[str, Any]) -> dict[str, Any]:
    """The figures of the verifier that isn't the cosine."""
    return dict(next(value for key, value in found.items() if key != "cosine"))


def ahead(found: dict[str, Any]) -> bool:
    """Whether the cosine has the greater AUC."""
    return bool(found["cosine"]["auc"]["value"] > ours_of(found)["auc"]["value"]) and not level(found)


def level(found: dict[str, Any]) -> bool:
    """Whether both have the same AUC as far as it is shown."""
    return f"{found['cosine']['auc']['value']:.3f}" == f"{ours_of(found)['auc']['value']:.3f}"


def row(name: str, found: dict[str, Any]) -> str:
    """A set's line."""
    ours = ours_of(found)
    auc, cosine = ours["auc"], found["cosine"]["auc"]
    return (
        f"| {name} | {auc['n']:,} | {ours['pairs']:,} | {auc['value']:.3f} [{auc['low']:.3f}, {auc['high']:.3f}] "
        f"| {ours['error']:.3f} | {cosine['value']:.3f} |"
    )


if __name__ == "__main__":
    main()
