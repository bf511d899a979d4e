"""Writes the model card of the verifier that ships, from what `test` measured.

    python -m recipes.verifier.card --figures FIGURES.json --work WORK --folder FOLDER --round WORK-2 --round WORK-3

FIGURES.json is what `test` wrote of two verifiers, FOLDER's and `cosine`. WORK holds what `mixture` wrote, WORK-2 and
the next folders what `further` trained.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from meve.calibration.probability_maps import calibration_from_dict
from recipes.verifier.contrasts import read_records
from recipes.verifier.conversations import read_conversations
from recipes.verifier.examples import Example
from recipes.verifier.further import CONFIG
from recipes.verifier.pages import read_pages
from recipes.verifier.splits import SEED, part_of
from recipes.verifier.train import AGAIN, FIRST, OTHERS, SECOND, THIRD, select_examples
from recipes.verifier.whole_documents import read_documents

CARD = """---
license: apache-2.0
language: [en]
library_name: onnxruntime
pipeline_tag: text-ranking
base_model: sentence-transformers/all-MiniLM-L6-v2
---

# meve-verifier-1

A cross-encoder for English. It reads a question and a passage together, and estimates the probability that the passage
answers the question or is evidence for the answer. 6 layers of 384 units, 384 tokens at once, 8-bit weights,
{size:.1f} MB. It runs on ONNX Runtime, on a CPU, without torch and without a network.

Licence: Apache-2.0. The project's NOTICE lists the sources and their licences.

## Training

1. `python -m recipes.verifier.mixture` (seed 42) makes the pairs: questions of HotpotQA, 2WikiMultihopQA and NQ-open
   with their gold passages, their own distractors and the best BM25 hits that aren't gold; second hops, where the
   question carries the beginning of the other gold passage; single sentences; and 25 more sets of questions,
   headings and statements with their passages, unanswerable questions included.
2. `python -m recipes.verifier.train` trains all-MiniLM-L6-v2 (Apache-2.0) with a new head by cross-entropy, up to
   {length} tokens a pair, in three stages of one pass each (seed {seed}). The first: {first:,} pairs of all sets,
   HotpotQA's paragraphs and second hops twice among them, 2WikiMultihopQA's paragraphs three times and second hops
   twice, in batches of {first_batch} with a learning rate of {first_rate:g}. The second: every pair of HotpotQA
   {hotpotqa} times, of 2WikiMultihopQA {wiki} times, of NQ-open once, and {others:,} more of the other sets,
   {second:,} in all, in batches of {second_batch} with {second_rate:g}, without dropout. The third: questions made of
   2WikiMultihopQA's passages by patterns (`recipes/verifier/chains.py`), claims that are sentences of abstracts and
   sections, with the rest of these as evidence (`recipes/verifier/claims.py`), and a sample of all the rest,
   {third:,} in all, in batches of {second_batch} with {third_rate:g}, without dropout. The result is the mean of the
   weights of stages two and three (Wortsman et al. 2022).
3. `python -m recipes.verifier.further` goes on from there, one pass a round, {further_length} tokens a pair (192 in
   the first two, 256 in the next seven), in batches of {further_batch} with {further_rate:g}, without dropout, the
   lowest layers frozen. Each round mixes new examples with a sample of the pairs above, whose targets are the mean of
   the label and of what the models estimated before. A third of the new passages stand amid other text. The new
   examples were written or made for this project:
   - The first two rounds (some 45,000 and {rounds[0]:,} pairs): near misses made from templates, questions of SQuAD
     with a detail exchanged, headings and FAQs of documentation as questions.
   - Two rounds from there (seeds 44 and 45, {rounds[1]:,} and {rounds[2]:,} pairs): mostly {pages:,} pages
     (`recipes/verifier/pages`), on software, policies, everyday reference, public information, conversations and facts,
     with questions that each section answers and near misses. Some 250 sections of the pages held out were among the
     irrelevant passages (the recipe now leaves them out); their questions were not. The mean of weights: one eighth of
     the model of step 2, and seven twenty-fourths each of the second round's and of these two.
   - Two rounds from that mean (seeds 50 and 51, {rounds[3]:,} and {rounds[4]:,} pairs), and two more from the mean of
     these and their start (seeds 52 and 53, {rounds[5]:,} and {rounds[6]:,} pairs): 4,685 questions, each with
     passages that answer it and passages that differ from these in a detail (`recipes/verifier/contrasts`; the first
     two rounds had a third of them), with a sample of the pages. The mean of weights: one half of the model before
     these four rounds, and a quarter each of the last two. Without that half, near misses are told better, and manuals
     worse.
   - One round from that mean (`--round references --seed 44`, {rounds[7]:,} pairs): {whole:,} of its pairs are
     questions on {documents} small documents, manuals of invented programs and products among them, each with passages
     of its document (`recipes/verifier/whole_documents`); the rest is a sample of all of the above, the contrasts now
     of {contrasts:,} questions. The mean of weights: one half of the model before, and one half of this one. With more
     of it, near misses are told better, and evidence of several passages worse.
   - One round from that mean (`--round conversations --seed 45`, {rounds[8]:,} pairs): {talk:,} of its pairs are
     questions on {conversations} conversations, each with turns, alone or between their neighbours
     (`recipes/verifier/conversations`); the rest is a sample of all of the above. What ships is a mean of weights: one
     half of the model before, and one half of this one.
4. `python -m recipes.verifier.ship` exports it to ONNX, quantises its weights to eight bits, and fits a Platt
   calibration on {fitted:,} pairs held out of training, of all sets together (expected calibration error on pairs held
   out of the fit: {error:.3f}).
5. `python -m recipes.sentences.fit` adds a second output, a logit per token, whose mean over a sentence is the
   calibrated logit that the sentence is evidence. It is fitted to questions of SQuAD outside the training above and to
   pages held out of it, and calibrated on other questions held out. The model's weights and scores don't change.

Held out of training: the questions that `meve bench` asks by default, a tenth of the pages, contrasts, documents,
conversations or dialogues of every other set, and whole sets: SciFact, NFCorpus, MuSiQue, HotpotQA's fullwiki contexts,
RGB.

## Evaluation

`python -m recipes.verifier.test --work WORK --verifier FOLDER --verifier cosine --questions {most}`, on held-out
examples: AUC over all pairs with its 95 % interval (questions resampled), and the expected calibration error (15 bins).
The last column is the AUC of the cosine of all-MiniLM-L6-v2. Negatives are the eight best BM25 hits that aren't gold, a
set's own distractors first. A `second hop`, the question with the first 60 words of another gold passage, has four
negatives; sets that come as pairs have three or more. NFCorpus has at most eight gold passages a question. Sets with
only unanswerable held-out questions have no row.

| set | questions | pairs | AUC | calibration error | cosine: AUC |
|---|---|---|---|---|---|
{rows}

Sets of fewer than a hundred pairs are too small for conclusions. The cosine is ahead on:

{behind}

Both are equal to the third digit on {level}.

On NFCorpus both are below 0.5: many of its gold documents share fewer words with the query than the BM25 negatives.
The calibration error is 0.1 or more on {off} of the {count} rows, mostly small sets and
sets held out entirely: `meve calibrate` fits the probabilities to your data.

## Intended use

Scoring retrieved passages, or sentences with their title. Longer passages are read in overlapping pieces, of which the
best counts. English only. It estimates whether a text answers, not whether its statements are true. Questions that need
several passages are scored better with the first passage beside them (`hops=2`).

## Limits

`python benchmarks/documentation/measure.py` with `near-misses`, `handbooks` and `surroundings` measures these:

- Passages that miss an answer by one detail (a day, number, name or version): in the half whose pairs weren't read,
  0.17 of them reach one half, and 0.67 of the answers. "Dr. Lopez is on call on Mondays." counts as an answer about
  Tuesdays.
- Terse facts in other words than the question's: 24 of 85 answers in small handbooks aren't verified, even with cosine
  and keywords.
- Answers amid other text: 80 unrelated words before an answer lower its probability by 0.042 in the median.

Turns of a conversation that answer only together with their neighbours are mostly rejected. On candidates from manuals,
the area under the curve is 0.79 to 0.83 (docs/results/retrieval.md).
"""


def main() -> None:
    """Write the model card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="the folder that it was trained in")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--round", type=Path, action="append", required=True, help="folders of `further`, in order")
    given = parser.parse_args()
    figures = json.loads(given.figures.read_text("utf-8"))
    stored = json.loads((given.folder / "calibration.json").read_text("utf-8"))["calibration"]
    calibration = calibration_from_dict(stored)
    pairs = [len(stage) for stage in select_examples(given.work)]
    rounds = [json.loads((folder / "further" / "training.json").read_text("utf-8"))["pairs"] for folder in given.round]
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
        further_length=CONFIG.max_length,
        further_batch=CONFIG.batch_size,
        further_rate=CONFIG.learning_rate,
        rounds=rounds,
        contrasts=sum(1 for _ in read_records()),
        documents=sum(part_of("whole_documents", each["title"]) == "train" for _, each in read_documents()),
        whole=count_examples(given.round[-2], "whole_documents"),
        conversations=sum(part_of("conversations", each["title"]) == "train" for _, each in read_conversations()),
        talk=count_examples(given.round[-1], "conversations"),
        pages=sum(1 for _ in read_pages()),
        off=sum(select_own(row)["error"] >= 0.1 for row in figures.values()),
        count=len(figures),
        third_rate=THIRD.learning_rate,
        seed=SEED,
        most=max(value["auc"]["n"] for row in figures.values() for value in row.values()),
        fitted=calibration.to_dict()["pairs"],
        error=calibration.to_dict()["error"],
        behind="\n".join(f"- {name}" for name, row in sorted(figures.items()) if is_cosine_ahead(row))
        or "none of them.",
        level=" and ".join(name for name, row in sorted(figures.items()) if is_level(row)) or "no set",
        rows="\n".join(format_row(name, row) for name, row in sorted(figures.items())),
    )
    (given.folder / "README.md").write_text(card, "utf-8")


def count_examples(folder: Path, kind: str) -> int:
    """Return the number of examples of a round whose set's name begins with a kind."""
    return sum(example.set.startswith(kind) for example in Example.read(folder / "further.jsonl"))


def select_own(row: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the verifier other than the cosine."""
    return dict(next(value for key, value in row.items() if key != "cosine"))


def is_cosine_ahead(row: dict[str, Any]) -> bool:
    """Return whether the cosine has the greater AUC."""
    return bool(row["cosine"]["auc"]["value"] > select_own(row)["auc"]["value"]) and not is_level(row)


def is_level(row: dict[str, Any]) -> bool:
    """Return whether both have the same AUC as displayed."""
    return f"{row['cosine']['auc']['value']:.3f}" == f"{select_own(row)['auc']['value']:.3f}"


def format_row(name: str, row: dict[str, Any]) -> str:
    """Format the table row of a set."""
    ours = select_own(row)
    auc, cosine = ours["auc"], row["cosine"]["auc"]
    return (
        f"| {name} | {auc['n']:,} | {ours['pairs']:,} | {auc['value']:.3f} [{auc['low']:.3f}, {auc['high']:.3f}] "
        f"| {ours['error']:.3f} | {cosine['value']:.3f} |"
    )


if __name__ == "__main__":
    main()
