"""A secret with an end, asked for after it: does any way in hand it out?

Secrets of every class that ends, half with a life of their own and half with that of their class, lie among ordinary
facts. Each is asked for a second before its end (it must be there, or its absence afterwards tells nothing) and at its
end. No maintenance has been by; at the very end it comes once, and the files are searched for what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from meve.evaluation.experiments.memory.access_paths import all_of, asked
from meve.evaluation.experiments.memory.environment import Entry, Plain, Scene, Stage
from meve.evaluation.experiments.memory.facts import facts
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.run import Progress
from meve.memory.policy import Policy, PolicyClass

NAME = "expiry"
MEMORY, PLAIN = "memory", "plain vectors"
BEFORE, AFTER, LEFT = "there before", "handed out after", "left in the files"
_CLASSES: tuple[PolicyClass, ...] = ("factual", "intent_bound", "ephemeral", "private")
_LOCKS = ["garage", "cellar", "safe", "gate", "locker", "alarm", "office", "attic", "shed", "mailbox"]
_CODED = "ghjkmnpqrtvwxyz"
"""No hexadecimal digits: in an export, hashes stand beside the records."""
_KEEPERS = ["Ana", "Boris", "Clara", "Dmitri", "Elsa", "Farid", "Greta", "Hugo", "Irma", "Jonas"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Something that must not outlive its end."""

    id: str
    user: str
    code: str
    lock: str
    keeper: str
    policy_class: PolicyClass
    ttl: timedelta | None
    """None for that of its class."""

    @property
    def text(self) -> str:
        """What is told."""
        return f"The code of {self.keeper}'s {self.lock} is {self.code}."

    @property
    def question(self) -> str:
        """What it answers."""
        return f"What is the code of {self.keeper}'s {self.lock}?"


def secrets(rng: Random, user: str, count: int) -> list[Secret]:
    """One user's, each with another code, at most a hundred."""
    places = rng.sample([(lock, keeper) for lock in _LOCKS for keeper in _KEEPERS], count)
    codes = ["".join(rng.choices(_CODED, k=8)) for _ in range(count)]
    return [
        Secret(
            id=f"s{n:03}", user=user, code=code, lock=lock, keeper=keeper, policy_class=rng.choice(_CLASSES),
            ttl=timedelta(seconds=rng.randint(60, 20 * 86_400)) if n % 2 else None,
        )
        for n, ((lock, keeper), code) in enumerate(zip(places, codes, strict=True))
    ]  # fmt: skip


def expiry(stage: Stage, progress: Progress) -> Tally:
    """Ask for each secret before and at its end."""
    tally = Tally(NAME, stage.seed)
    plain = Plain(stage.embedder)
    rng = stage.rng(NAME)
    with stage.scene() as scene:
        hidden = [s for user in stage.users for s in _told(stage, scene, plain, user, rng)]
        done = 0
        for end, ending in sorted(_by_end(scene, hidden).items()):
            progress(NAME, done, len(hidden))
            _before_and_after(scene, plain, ending, end, tally)
            done += len(ending)
        scene.memory.maintain()
        written = b"".join(file.read_bytes() for file in sorted(scene.file.parent.glob("memory.db*")))
        for secret in hidden:
            tally.add(MEMORY, LEFT, secret.code.encode() in written)
    return tally


def _by_end(scene: Scene, hidden: Sequence[Secret]) -> dict[datetime, list[Secret]]:
    """By the end that the policy or the secret itself gives, whatever the memory made of it."""
    found: dict[datetime, list[Secret]] = {}
    for secret in hidden:
        life = secret.ttl or Policy().rule(secret.policy_class).ttl
        if life is not None:
            found.setdefault(scene.clock.now() + life, []).append(secret)
    return found


def _told(stage: Stage, scene: Scene, plain: Plain, user: str, rng: Random) -> list[Secret]:
    mine = secrets(rng, user, stage.sizes.secrets)
    known = facts(rng, stage.sizes.facts)
    for fact in known:
        scene.tell(user, fact, policy_class="canonical")
    for secret in mine:
        scene.memory.add(
            secret.text, user_id=user, source="doc", policy_class=secret.policy_class, id=secret.id, ttl=secret.ttl
        )
    plain.add([Entry(id=fact.id, text=fact.text, user=user) for fact in known])
    plain.add([Entry(id=secret.id, text=secret.text, user=user) for secret in mine])
    return mine


def _before_and_after(scene: Scene, plain: Plain, ending: Sequence[Secret], end: datetime, tally: Tally) -> None:
    second = timedelta(seconds=1)
    scene.clock.advance(max(end - second - scene.clock.now(), timedelta(0)))
    for secret in ending:
        found = asked(scene.memory, secret.user, secret.question)["search"]
        tally.add(MEMORY, BEFORE, secret.code in found)
        tally.add(PLAIN, BEFORE, _in(plain, secret))
    scene.clock.advance(end - scene.clock.now())
    for secret in ending:
        doors = asked(scene.memory, secret.user, secret.question) | all_of(scene.memory, secret.user)
        leaked = {name: secret.code in text for name, text in doors.items()}
        tally.add(MEMORY, AFTER, any(leaked.values()))
        for name, out in leaked.items():
            tally.add(MEMORY, f"by {name}", out)
        tally.add(PLAIN, AFTER, _in(plain, secret))


def _in(plain: Plain, secret: Secret) -> bool:
    near = plain.search(secret.question, user=secret.user)
    return any(secret.code in entry.text for entry in near)
