"""The tags experiment: whether a wrong tag hides the right memory, beside a store that only filters by tags.

Every fact has its topic as a tag. It is asked for with that tag, without a tag, with another topic's tag, and with an
unknown tag. Facts that were added with a wrong tag are asked for with the right one.
"""

from random import Random

from meve.evaluation.experiments.memory.environment import Environment, MemorySandbox, PlainEntry, PlainStore
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.experiments.memory.synthetic_facts import TOPICS, UserFact, make_facts
from meve.types import StageProgress

NAME = "tags"
MEMORY, FILTER = "memory", "plain vectors, filtered by tag"
CASES = ("right tag", "no tag", "another topic's tag", "a tag nobody has", "memory tagged wrongly")


def run_tags(environment: Environment, progress: StageProgress) -> Tally:
    """Ask for every fact with every tag."""
    tally = Tally(NAME, environment.seed)
    rng = environment.rng(NAME)
    plain = PlainStore(environment.embedder)
    with environment.open_sandbox() as sandbox:
        for n, user in enumerate(environment.users):
            progress(NAME, n, len(environment.users))
            facts = make_facts(rng, environment.sizes.facts, user)
            mistagged = {fact.id for fact in facts[::5]}
            tags = {fact.id: _other_topic(rng, fact) if fact.id in mistagged else fact.topic for fact in facts}
            for fact in facts:
                sandbox.add_fact(fact, tag=tags[fact.id])
            plain.add([PlainEntry(id=f.id, text=f.text, user=user, tag=tags[f.id]) for f in facts])
            for fact in facts:
                if fact.id in mistagged:
                    _ask(sandbox, plain, fact, fact.topic, CASES[4], tally)
                    continue
                for case, tag in zip(CASES, (fact.topic, "", _other_topic(rng, fact), "zoology"), strict=False):
                    _ask(sandbox, plain, fact, tag, case, tally)
    return tally


def _other_topic(rng: Random, fact: UserFact) -> str:
    return rng.choice([topic for topic in TOPICS if topic != fact.topic])


def _ask(sandbox: MemorySandbox, plain: PlainStore, fact: UserFact, tag: str, case: str, tally: Tally) -> None:
    recall = sandbox.search(fact, tags=[tag] if tag else None)
    entries = plain.search(fact.question, user=fact.user, tag=tag)
    tally.add(MEMORY, case, fact.id in [r.id for r in recall.records])
    tally.add(FILTER, case, fact.id in [entry.id for entry in entries])
