"""The isolation experiment: whether a user gets another user's facts from one store.

All users have facts of the same patterns. Each user asks what only another one knows, so that nothing in the store is
nearer to the question than the other's answer. Each user also asks for their own facts, which must be found, and for
private ones without requesting private memories.
"""

from meve.evaluation.experiments.memory.environment import Environment, MemorySandbox, PlainStore
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
    facts = {user: make_facts(rng, environment.sizes.facts, user) for user in environment.users}
    with environment.open_sandbox() as sandbox:
        for own in facts.values():
            for n, fact in enumerate(own):
                sandbox.add_fact(fact, policy_class="private" if _is_private(n) else "factual")
            plain.add_facts(own)
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
                _ask_own(sandbox, plain, fact, tally)
    return tally


def _is_private(n: int) -> bool:
    return n % 5 == 0


def _ask_foreign(
    sandbox: MemorySandbox, plain: PlainStore, user: str, fact: UserFact, foreign_texts: set[str], tally: Tally
) -> None:
    text = "\n".join(sandbox.read_by_question(user, fact.question).values())
    tally.add(MEMORY, LEAK, any(foreign in text for foreign in foreign_texts))
    tally.add(ONE, LEAK, any(entry.user != user for entry in plain.search(fact.question)))
    tally.add(AFTERWARDS, LEAK, False)


def _ask_own(sandbox: MemorySandbox, plain: PlainStore, fact: UserFact, tally: Tally) -> None:
    is_in_plain = fact.id in [entry.id for entry in plain.search(fact.question) if entry.user == fact.user]
    is_recalled = fact.id in [r.id for r in sandbox.search(fact, include_private=True).records]
    for system, is_found in ((MEMORY, is_recalled), (ONE, is_in_plain), (AFTERWARDS, is_in_plain)):
        tally.add(system, OWN, is_found)
    if _is_private(int(fact.id[1:])):
        is_leaked = fact.text in sandbox.search(fact).text
        for system, is_found in ((MEMORY, is_leaked), (ONE, is_in_plain), (AFTERWARDS, is_in_plain)):
            tally.add(system, PRIVATE, is_found)
