"""Another user's fact: users with facts of the same patterns, in one store. Does one get the other's?

A user is asked what only another one knows: nothing in the store is nearer to the question than the other's answer.
Every user is asked about own facts too, which must be found, and about private ones without asking for private ones.
"""

from collections.abc import Sequence

from meve.evaluation.experiments.memory.access_paths import all_of, asked
from meve.evaluation.experiments.memory.environment import Entry, K, Plain, Scene, Stage
from meve.evaluation.experiments.memory.facts import Fact, facts
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.run import Progress

NAME = "isolation"
MEMORY = "memory"
ONE, AFTERWARDS = "plain vectors, one store", "plain vectors, others taken out of the top 5"
LEAK, OWN, PRIVATE = "another's handed out", "own found", "private handed out unasked"


def isolation(stage: Stage, progress: Progress) -> Tally:
    """Ask each user what another knows, and what is theirs."""
    tally = Tally(NAME, stage.seed)
    plain = Plain(stage.embedder)
    rng = stage.rng(NAME)
    known = {user: facts(rng, stage.sizes.facts) for user in stage.users}
    with stage.scene() as scene:
        for user, mine in known.items():
            _tell(scene, plain, user, mine)
        for n, user in enumerate(stage.users):
            progress(NAME, n, len(stage.users))
            asks = {fact.question for fact in known[user]}
            foreign = [f for other in stage.users if other != user for f in known[other] if f.question not in asks]
            asking = rng.sample(foreign, min(len(foreign), stage.sizes.facts))
            theirs = {f.text for f in foreign}
            everything = " ".join(all_of(scene.memory, user).values())
            tally.add(MEMORY, "another's in list or export", any(text in everything for text in theirs))
            for fact in asking:
                _foreign(scene, plain, user, fact, theirs, tally)
            for fact in known[user]:
                _own(scene, plain, user, fact, tally)
    return tally


def _tell(scene: Scene, plain: Plain, user: str, mine: Sequence[Fact]) -> None:
    for n, fact in enumerate(mine):
        scene.tell(user, fact, policy_class="private" if _private(n) else "factual")
    plain.add([Entry(id=fact.id, text=fact.text, user=user) for fact in mine])


def _private(n: int) -> bool:
    return n % 5 == 0


def _foreign(scene: Scene, plain: Plain, user: str, fact: Fact, theirs: set[str], tally: Tally) -> None:
    handed = "\n".join(asked(scene.memory, user, fact.question).values())
    tally.add(MEMORY, LEAK, any(text in handed for text in theirs))
    near = plain.search(fact.question)
    tally.add(ONE, LEAK, any(entry.user != user for entry in near))
    tally.add(AFTERWARDS, LEAK, False)


def _own(scene: Scene, plain: Plain, user: str, fact: Fact, tally: Tally) -> None:
    private = _private(int(fact.id[1:]))
    found = scene.memory.search(fact.question, user_id=user, limit=K, include_private=True)
    tally.add(MEMORY, OWN, fact.id in [r.id for r in found.records])
    near = [entry.id for entry in plain.search(fact.question) if entry.user == user]
    tally.add(ONE, OWN, fact.id in near)
    tally.add(AFTERWARDS, OWN, fact.id in near)
    if private:
        unasked = scene.memory.search(fact.question, user_id=user, limit=K)
        tally.add(MEMORY, PRIVATE, fact.text in unasked.text)
        tally.add(ONE, PRIVATE, fact.id in near)
        tally.add(AFTERWARDS, PRIVATE, fact.id in near)
