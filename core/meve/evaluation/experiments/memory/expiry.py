"""The expiry experiment: whether any access path returns an expired secret.

Secrets of every class that expires lie among ordinary facts, half of them with their own time to live. Each is asked
for a second before it expires, when it must be there, and at the second at which it expires. Maintenance runs only once
at the end; then the files are searched for what is left, also in the records that their keys open.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from meve.evaluation.experiments.memory.environment import Environment, MemorySandbox, PlainEntry, PlainStore
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.experiments.memory.synthetic_facts import make_facts
from meve.memory.policy import Policy, PolicyClass
from meve.memory.stores.protocol import RecordQuery
from meve.memory.stores.sqlite.store import SqliteStore
from meve.types import StageProgress

NAME = "expiry"
MEMORY, PLAIN = "memory", "plain vectors"
BEFORE, AFTER, LEFT = "there before", "handed out after", "left in the files"
_CLASSES: tuple[PolicyClass, ...] = ("factual", "intent_bound", "ephemeral", "private")
_LOCKS = ["garage", "cellar", "safe", "gate", "locker", "alarm", "office", "attic", "shed", "mailbox"]
_CODE_LETTERS = "ghjkmnpqrtvwxyz"
"""Letters that are no hexadecimal digits, since an export has hashes beside the records."""
_KEEPERS = ["Ana", "Boris", "Clara", "Dmitri", "Elsa", "Farid", "Greta", "Hugo", "Irma", "Jonas"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret that must not be returned after its expiry."""

    id: str
    user: str
    code: str
    lock: str
    keeper: str
    policy_class: PolicyClass
    ttl: timedelta | None
    """The time to live; None for that of its class."""

    @property
    def text(self) -> str:
        """The sentence that is added."""
        return f"The code of {self.keeper}'s {self.lock} is {self.code}."

    @property
    def question(self) -> str:
        """The question that the sentence answers."""
        return f"What is the code of {self.keeper}'s {self.lock}?"


def make_secrets(rng: Random, user: str, count: int) -> list[Secret]:
    """Return one user's secrets, each with another code; at most 100."""
    pairs = rng.sample([(lock, keeper) for lock in _LOCKS for keeper in _KEEPERS], count)
    codes = ["".join(rng.choices(_CODE_LETTERS, k=8)) for _ in range(count)]
    return [
        Secret(
            id=f"s{n:03}", user=user, code=code, lock=lock, keeper=keeper, policy_class=rng.choice(_CLASSES),
            ttl=timedelta(seconds=rng.randint(60, 20 * 86_400)) if n % 2 else None,
        )
        for n, ((lock, keeper), code) in enumerate(zip(pairs, codes, strict=True))
    ]  # fmt: skip


def run_expiry(environment: Environment, progress: StageProgress) -> Tally:
    """Ask for each secret before and at its expiry."""
    tally = Tally(NAME, environment.seed)
    plain = PlainStore(environment.embedder)
    rng = environment.rng(NAME)
    with environment.open_sandbox() as sandbox:
        secrets = [s for user in environment.users for s in _add_secrets(environment, sandbox, plain, user, rng)]
        asked_count = 0
        for moment, expiring in sorted(_group_by_expiry(sandbox, secrets).items()):
            progress(NAME, asked_count, len(secrets))
            _ask_around_expiry(sandbox, plain, expiring, moment, tally)
            asked_count += len(expiring)
        sandbox.memory.maintain()
        opened = _read_with_keys(sandbox)
        file_content = b"".join(file.read_bytes() for file in sorted(sandbox.file.parent.glob("memory.db*")))
        for secret in secrets:
            tally.add(MEMORY, LEFT, secret.code in opened or secret.code.encode() in file_content)
    return tally


def _read_with_keys(sandbox: MemorySandbox) -> str:
    """Return the text of all stored records, whether they have expired or not."""
    with closing(SqliteStore.open(sandbox.file)) as store, store.reading() as snapshot:
        queries = [RecordQuery(user=user, archived=None) for user in snapshot.users()]
        return " ".join(stored.record.text for query in queries for stored in snapshot.records(query))


def _group_by_expiry(sandbox: MemorySandbox, secrets: Sequence[Secret]) -> dict[datetime, list[Secret]]:
    """Group secrets by the expiry that the policy or the secret states, independently of the memory."""
    groups: dict[datetime, list[Secret]] = {}
    for secret in secrets:
        ttl = secret.ttl or Policy().rule(secret.policy_class).ttl
        if ttl is not None:
            groups.setdefault(sandbox.clock.now() + ttl, []).append(secret)
    return groups


def _add_secrets(
    environment: Environment, sandbox: MemorySandbox, plain: PlainStore, user: str, rng: Random
) -> list[Secret]:
    secrets = make_secrets(rng, user, environment.sizes.secrets)
    facts = make_facts(rng, environment.sizes.facts, user)
    for fact in facts:
        sandbox.add_fact(fact, policy_class="canonical")
    for secret in secrets:
        sandbox.memory.add(
            secret.text, user_id=user, source="doc", policy_class=secret.policy_class, id=secret.id, ttl=secret.ttl
        )
    plain.add_facts(facts)
    plain.add([PlainEntry(id=secret.id, text=secret.text, user=user) for secret in secrets])
    return secrets


def _ask_around_expiry(
    sandbox: MemorySandbox, plain: PlainStore, expiring: Sequence[Secret], moment: datetime, tally: Tally
) -> None:
    second = timedelta(seconds=1)
    sandbox.clock.advance(max(moment - second - sandbox.clock.now(), timedelta(0)))
    for secret in expiring:
        text = sandbox.read_by_question(secret.user, secret.question)["search"]
        tally.add(MEMORY, BEFORE, secret.code in text)
        tally.add(PLAIN, BEFORE, _is_found(plain, secret))
    sandbox.clock.advance(moment - sandbox.clock.now())
    for secret in expiring:
        texts = sandbox.read_by_question(secret.user, secret.question) | sandbox.read_all(secret.user)
        leaked = {name: secret.code in text for name, text in texts.items()}
        tally.add(MEMORY, AFTER, any(leaked.values()))
        for path, is_leaked in leaked.items():
            tally.add(MEMORY, f"by {path}", is_leaked)
        tally.add(PLAIN, AFTER, _is_found(plain, secret))


def _is_found(plain: PlainStore, secret: Secret) -> bool:
    return any(secret.code in entry.text for entry in plain.search(secret.question, user=secret.user))
