"""A wrong tag: does it hide the right memory? Beside a store that filters by tags, and does no more.

Every fact carries its topic as a tag. It is asked for with that tag, with none, with another topic's, with one that
nobody has; and with the right one where the memory itself was tagged wrongly when it was added.
"""

from random import Random

from meve.evaluation.experiments.memory.environment import Entry, K, Plain, Scene, Stage
from meve.evaluation.experiments.memory.facts import TOPICS, Fact, facts
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.run import Progress

NAME = "tags"
MEMORY, FILTER = "memory", "plain vectors, filtered by tag"
ASKED = ("right tag", "no tag", "another topic's tag", "a tag nobody has", "memory tagged wrongly")


def tags(stage: Stage, progress: Progress) -> Tally:
    """Ask for every fact with every tag."""
    tally = Tally(NAME, stage.seed)
    rng = stage.rng(NAME)
    plain = Plain(stage.embedder)
    with stage.scene() as scene:
        for n, user in enumerate(stage.users):
            progress(NAME, n, len(stage.users))
            known = facts(rng, stage.sizes.facts)
            strays = {fact.id for fact in known[::5]}  # tagged wrongly
            stored = {fact.id: _other(rng, fact) if fact.id in strays else fact.topic for fact in known}
            for fact in known:
                scene.memory.add(
                    fact.text, user_id=user, source="doc", policy_class="factual", id=fact.id, tags=[stored[fact.id]]
                )
            plain.add([Entry(id=f.id, text=f.text, user=user, tag=stored[f.id]) for f in known])
            for fact in known:
                if fact.id in strays:
                    _ask(scene, plain, user, fact, fact.topic, ASKED[4], tally)
                    continue
                for how, tag in zip(ASKED, (fact.topic, "", _other(rng, fact), "zoology"), strict=False):
                    _ask(scene, plain, user, fact, tag, how, tally)
    return tally


def _other(rng: Random, fact: Fact) -> str:
    return rng.choice([topic for topic in TOPICS if topic != fact.topic])


def _ask(scene: Scene, plain: Plain, user: str, fact: Fact, tag: str, how: str, tally: Tally) -> None:
    found = scene.memory.search(fact.question, user_id=user, tags=[tag] if tag else None, limit=K)
    near = plain.search(fact.question, user=user, tag=tag)
    tally.add(MEMORY, how, fact.id in [r.id for r in found.records])
    tally.add(FILTER, how, fact.id in [entry.id for entry in near])
