"""The isolation experiment: whether a user gets another user's facts from one store.

All users have facts of the same patterns. Each user asks what only another one knows, so that nothing in the store is
nearer to the question than the other's answer. Each user also asks for their own facts, which must be found, and for
private ones without requesting private memories.
"""

from collections.abc import Sequence

from meve.evaluation.experiments.memory.environment import Environment, K, MemorySandbox, PlainEntry, PlainStore
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.experiments.memory.synthetic_facts import UserFact, make_facts
from meve.types import StageProgress

NAME = "isolation"
MEMORY = "memory"
ONE, AFTERWARDS = "plain vectors, one store", "plain vectors, others taken out of the top 5"
LEAK, OWN, PRIVATE = "another's handed out", "own found", "private handed out unasked"


def run_isolation(environment: Environment, progress: StageProgress) -> Tally:
    """Let each user ask for another user's facts and for their own."""
    tally = Tally(NAME, environment.seed)
    plain = PlainStore(environment.embedder)
    rng = environment.rng(NAME)
    facts = {user: make_facts(rng, environment.sizes.facts) for user in environment.users}
    with environment.open_sandbox() as sandbox:
        for user, own in facts.items():
            _add_all(sandbox, plain, user, own)
        for n, user in enumerate(environment.users):
            progress(NAME, n, len(environment.users))
            questions = {fact.question for fact in facts[user]}
            foreign = [f for other in environment.users if other != user for f in facts[other]]
            foreign = [fact for fact in foreign if fact.question not in questions]
            sample = rng.sample(foreign, min(len(foreign), environment.sizes.facts))
            foreign_texts = {f.text for f in foreign}
            everything = " ".join(sandbox.read_all(user).values())
            tally.add(MEMORY, "another's in list or export", any(text in everything for text in foreign_texts))
            for fact in sample:
                _ask_foreign(sandbox, plain, user, fact, foreign_texts, tally)
            for fact in facts[user]:
                _ask_own(sandbox, plain, user, fact, tally)
    return tally


def _add_all(sandbox: MemorySandbox, plain: PlainStore, user: str, facts: Sequence[UserFact]) -> None:
    for n, fact in enumerate(facts):
        sandbox.add_fact(user, fact, policy_class="private" if _is_private(n) else "factual")
    plain.add([PlainEntry(id=fact.id, text=fact.text, user=user) for fact in facts])


def _is_private(n: int) -> bool:
    return n % 5 == 0


def _ask_foreign(
    sandbox: MemorySandbox, plain: PlainStore, user: str, fact: UserFact, foreign_texts: set[str], tally: Tally
) -> None:
    text = "\n".join(sandbox.read_by_question(user, fact.question).values())
    tally.add(MEMORY, LEAK, any(foreign in text for foreign in foreign_texts))
    tally.add(ONE, LEAK, any(entry.user != user for entry in plain.search(fact.question)))
    tally.add(AFTERWARDS, LEAK, False)


def _ask_own(sandbox: MemorySandbox, plain: PlainStore, user: str, fact: UserFact, tally: Tally) -> None:
    recall = sandbox.memory.search(fact.question, user_id=user, limit=K, include_private=True)
    tally.add(MEMORY, OWN, fact.id in [r.id for r in recall.records])
    plain_ids = [entry.id for entry in plain.search(fact.question) if entry.user == user]
    tally.add(ONE, OWN, fact.id in plain_ids)
    tally.add(AFTERWARDS, OWN, fact.id in plain_ids)
    if _is_private(int(fact.id[1:])):
        recall = sandbox.memory.search(fact.question, user_id=user, limit=K)
        tally.add(MEMORY, PRIVATE, fact.text in recall.text)
        tally.add(ONE, PRIVATE, fact.id in plain_ids)
        tally.add(AFTERWARDS, PRIVATE, fact.id in plain_ids)
