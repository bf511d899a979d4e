"""Measures answers of a small language model from routed evidence, a flat hybrid search, and the latest history.

    python -m benchmarks.routing_answers --data DATA --llm FOLDER --to OUT [--questions 30]

FOLDER holds a model for transformers, such as SmolLM2-135M-Instruct; `--llm` also takes a server's address. The flat
search gets as many tokens of turns as the router's first attempt had, the history what fits into the window. Questions
are those of the table halves of LoCoMo and LongMemEval, drawn by a hash, a third of LoCoMo's without an answer. The
model's replies are stored in OUT, so an interrupted run goes on where it was.
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from meve.components.embedders import ACCURATE, resolve_embedder
from meve.components.llms import resolve_llm
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import resolve_verifier
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation.experiments.memory.recall import FUSED, make_baselines, open_filled
from meve.evaluation.experiments.routing.cases import RoutingCase, RoutingSet
from meve.evaluation.experiments.routing.experiment import SETS, sample_cases
from meve.evaluation.experiments.routing.systems import CaseClock
from meve.evaluation.measures.answers import normalize_answer
from meve.memory import GovernedMemory
from meve.memory.records import MemoryRecord
from meve.ports import LanguageModel, TokenCounter
from meve.routing import MemoryRouter, RouterConfig
from meve.routing._answering import INSTRUCTION
from meve.routing._grounding import look_up, read_evidence
from meve.routing._rules import asks_for_calculation
from meve.routing._validator import find_hard_failure

WINDOW, ANSWER, HISTORY = 1_800, 32, 1_500
"""The tokens of the window, of an answer, and of the history, by MeVe's tokenizer; the model's own gives more."""
ROUTER, FLAT, LATEST = "router", "flat hybrid, equal tokens", "latest history, whole window"
_NUMBER = re.compile(r"(?<=<memory )[0-9a-f]+(?=>)|(?<=</memory )[0-9a-f]+(?=>)")
"""The number in the tags around memories, which is another one in each prompt."""


class StoredReplies:
    """A language model whose replies are stored by a hash of the prompt without the number of its tags."""

    def __init__(self, name: str, file: Path) -> None:
        self._file, self._name = file, name
        self._model: LanguageModel | None = None
        self._replies = dict(map(json.loads, file.read_text("utf-8").splitlines())) if file.exists() else {}

    def __call__(self, prompt: str) -> str:
        """Return the stored reply to a prompt, or the model's."""
        key = sha256(_NUMBER.sub("", prompt).encode()).hexdigest()[:24]
        if key not in self._replies:
            if self._model is None:
                self._model = _load(self._name)
            self._replies[key] = self._model(prompt)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, self._replies[key]]) + "\n")
        return self._replies[key]


def _load(name: str) -> LanguageModel:
    if name.startswith("http"):
        return resolve_llm(name)
    from meve.components.llms.local import TransformersLanguageModel

    return TransformersLanguageModel.from_name(name, max_tokens=ANSWER, local_files_only=True)


def token_f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of the precision and recall of an answer's normalized words, in [0, 1]."""
    given, wanted = normalize_answer(answer).split(), normalize_answer(gold).split()
    shared = sum((Counter(given) & Counter(wanted)).values())
    return 2 * shared / (len(given) + len(wanted)) if shared else 0.0


def ask_all(data: RoutingSet, cases: Sequence[RoutingCase], llm: StoredReplies, cache: Path) -> Iterator[dict]:
    """Yield the answer of each system to each question, with its measures."""
    users = {case.user for case in cases}
    turns = {user: own for user, own in data.turns.items() if user in users}
    embedder, tokens = DiskCachedEmbedder(resolve_embedder(ACCURATE), cache), resolve_tokens(None)
    search = make_baselines(turns, embedder, 200)[FUSED]
    clock = CaseClock()
    with open_filled(turns, embedder, verifier=resolve_verifier(None, embedder), tokens=tokens, clock=clock) as memory:
        for case in cases:
            clock.moment = case.at
            config = RouterConfig(window=WINDOW, answer_tokens=ANSWER, llm_timeout=3_600)
            routed = MemoryRouter(memory, user_id=case.user, llm=llm, config=config).answer(case.text)
            evidence = routed.evidence
            yield _score(case, ROUTER, "" if routed.abstained else routed.text, evidence.records, evidence.tokens)
            for system, ids, budget in (
                (FLAT, search(case.user, case.text), routed.steps[0].evidence.tokens),
                (LATEST, [turn.id for turn in reversed(turns[case.user])], HISTORY),
            ):
                records, used = _pack(memory, case.user, ids, budget, tokens)
                prompt = _make_prompt(case, records if system == FLAT else records[::-1])
                answer = llm(prompt)
                yield _score(case, system, "" if find_hard_failure(answer) else answer, records, used)


def _pack(
    memory: GovernedMemory, user: str, ids: Sequence[str], most: int, tokens: TokenCounter
) -> tuple[list[MemoryRecord], int]:
    """Return the memories that fit, in order, and their tokens."""
    kept, used = [], 0
    for record in (memory.get(id, user_id=user) for id in ids):
        size = tokens.count(_print(record)) + 1
        if used + size > most:
            break
        kept.append(record)
        used += size
    return kept, used


def _print(record: MemoryRecord) -> str:
    return f"{record.text} ({record.created_at:%Y-%m-%d})"


def _make_prompt(case: RoutingCase, records: Sequence[MemoryRecord]) -> str:
    head = INSTRUCTION.format(day=f"{case.at:%A, %d %B %Y}")
    lines = "\n".join(f"[{n}] {_print(record)}" for n, record in enumerate(records, 1))
    return f"{head}\n\n{lines}\n\nQuestion: {case.text}\nAnswer:"


def _score(case: RoutingCase, system: str, answer: str, records: Sequence[MemoryRecord], tokens: int) -> dict:
    gold = case.answers[0] if case.answers else ""
    told = read_evidence(records, today=case.at.date())
    found = look_up(answer, case.text, told, calculated=asks_for_calculation(case.text))
    return {
        "id": case.id, "system": system, "question": case.text, "gold": gold, "answer": answer, "tokens": tokens,
        "exact match": float(bool(gold) and normalize_answer(answer) == normalize_answer(gold)),
        "token F1": token_f1(answer, gold), "answered": float(bool(answer)),
        "grounded": float(not found.missing and found.share > 0.5) if answer else None,
        "evidence": float(case.evidence <= {record.id for record in records}) if case.evidence else None,
    }  # fmt: skip


def choose_cases(data: RoutingSet, count: int) -> list[RoutingCase]:
    """Return questions of the table half, of which every fourth has no answer as long as there are such."""
    cases = [case for case in sample_cases(data.cases, None, 42) if case.half == "table"]
    answered = iter([case for case in cases if case.answers])
    unanswerable = iter([case for case in cases if not case.evidence])
    chosen = []
    for place in range(count):
        case = next(unanswerable, None) if place % 4 == 3 else None
        chosen.append(case or next(answered))
    return chosen


def main() -> None:
    """Ask, print each answer as a line of JSON into OUT, and a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--llm", required=True, help="a folder, a model's name, or a server's address")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=30, help="questions of each set")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["locomo", "longmemeval"])
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    llm = StoredReplies(options.llm, options.to / "replies.jsonl")
    for name in options.sets:
        data = SETS[name](options.data)
        rows = defaultdict(list)
        with (options.to / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for row in ask_all(data, choose_cases(data, options.questions), llm, options.to / "embeddings.sqlite"):
                rows[row["system"]].append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
        _print_table(name, rows)


def _print_table(name: str, rows: dict[str, list[dict]]) -> None:
    for system, own in rows.items():
        known = [row for row in own if row["gold"]]
        unknown = [row for row in own if not row["gold"]]
        shares = {m: _mean(known, m) for m in ("exact match", "token F1", "answered", "grounded", "evidence", "tokens")}
        refused = f"{1 - _mean(unknown, 'answered'):.2f} of {len(unknown)}" if unknown else "-"
        told = ", ".join(f"{measure} {value:.3f}" for measure, value in shares.items())
        print(f"{name}, {system}: {len(known)} questions: {told}; without an answer, refused {refused}")


def _mean(rows: Sequence[dict], measure: str) -> float:
    values = [row[measure] for row in rows if row[measure] is not None]
    return sum(values) / len(values) if values else float("nan")


if __name__ == "__main__":
    main()
