"""Upkeep in rounds: expiry, pruning, merging, summaries, archive, the cap; by the call, or in a thread."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from meve.memory._maintenance.plan import Round, Upkept
from meve.memory._maintenance.summaries import Summariser
from meve.memory._runtime import Kit

TRIES = 3
"""How often a round is planned beside other writers, before it keeps them waiting."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Does the rounds, each user's in a transaction of its own.

    What takes long, comparing and summarising, is done before the transaction, so that nobody who writes waits for it.
    If the user's records changed meanwhile, the round is planned anew.
    """

    kit: Kit
    summariser: Summariser
    forget: Callable[[str], None]
    """Told of each user whose memory changed."""

    def maintain(self, users: Sequence[str] | None = None, *, dry_run: bool = False) -> Upkept:
        """One round, over these users' keys, or all.

        Args:
            users: their keys.
            dry_run: plan, and do nothing.

        Raises:
            ModelError: a part that compares or summarises failed; all else is done, of every user.
        """
        done, failed = Upkept(), None
        for user in self.kit.store.users() if users is None else users:
            made = Round(self.kit, self.summariser, user) if dry_run else self._done(user)
            done.include(made.done)
            failed = failed or made.failed
        if not dry_run:
            done = replace(done, scrubbed=self.kit.store.scrub())
        if failed is not None:
            raise failed
        return done

    def _done(self, user: str) -> Round:
        for _ in range(TRIES):
            planned = Round(self.kit, self.summariser, user)
            with self.kit.store.writing() as transaction:
                if self.kit.store.version(user) != planned.version:
                    continue
                changed = planned.apply(transaction)
            break
        else:
            with self.kit.store.writing() as transaction:
                planned = Round(self.kit, self.summariser, user)
                changed = planned.apply(transaction)
        if changed:
            self.forget(user)
        return planned


class Background:
    """Does rounds in a thread, until it is stopped.

    Args:
        round_: one round.
        every: seconds between the end of one and the begin of the next.
    """

    def __init__(self, round_: Callable[[], object], every: float) -> None:
        self.failed: Exception | None = None
        """What the last round failed with; None if it didn't."""
        self._round = round_
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meve-upkeep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """After the round that is running."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self._round()
                self.failed = None
            except Exception as error:
                self.failed = error
