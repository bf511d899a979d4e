"""Maintenance: plan and apply it for each user, by the call or in a background thread."""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from meve._repeating import repeat_rolled_back
from meve.errors import AuditError
from meve.memory._maintenance.plan import MaintenancePlan, MaintenanceReport
from meve.memory._runtime import MemoryRuntime

_LOG = logging.getLogger("meve")
TRIES = 3
"""The number of plans made while others may write; after that, writers wait for the next plan."""


@dataclass(frozen=True, slots=True)
class Maintainer:
    """Maintains the records of users, each user's in a transaction of its own.

    Slow work (comparing, summarising) is planned before the transaction, so that no writer waits for it. If the user's
    records changed in the meantime, the plan is repeated.
    """

    runtime: MemoryRuntime

    def maintain(self, users: Sequence[str] | None = None, *, dry_run: bool = False) -> MaintenanceReport:
        """Maintain the records of these users, by key, or of all. See `GovernedMemory.maintain`."""
        report, failed = MaintenanceReport(), None
        self.runtime.clock.now()  # the file remembers it, also if nothing is stored
        for user in self.runtime.store.users() if users is None else users:
            plan = MaintenancePlan(self.runtime, user) if dry_run else self._maintain(user)
            report.include(plan.report)
            failed = failed or plan.failed
        if users is None:
            report = replace(report, damage=self.runtime.store.find_damage())
        if self.runtime.checkpoints is not None and not dry_run:
            try:
                self.runtime.checkpoints.write(self.runtime.store.head, self.runtime.clock.now)
            except AuditError as error:
                raise error from failed or error.__cause__
        if failed is not None:
            raise failed
        return report

    @repeat_rolled_back
    def _maintain(self, user: str) -> MaintenancePlan:
        for _ in range(TRIES):
            plan = MaintenancePlan(self.runtime, user)
            with self.runtime.store.writing() as transaction:
                if transaction.version(user) == plan.version:
                    plan.apply(transaction)
                    return plan
        with self.runtime.store.writing() as transaction:
            plan = MaintenancePlan(self.runtime, user, transaction)
            plan.apply(transaction)
        return plan


class Background:
    """Runs a function repeatedly in a thread until `stop`.

    Args:
        maintain: the function.
        seconds: the time between the end of a run and the start of the next.
        at_once: whether the first run starts now, or after `seconds`.
    """

    def __init__(self, maintain: Callable[[], object], seconds: float, *, at_once: bool = False) -> None:
        self.failed: Exception | None = None
        """The error of the last run; None if it succeeded."""
        self._maintain = maintain
        self._seconds, self._at_once = seconds, at_once
        self._process = os.getpid()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meve-maintenance", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the run in progress; a forked process has no such run."""
        if self._process != os.getpid():
            return
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        wait = 0 if self._at_once else self._seconds
        while not self._stop.wait(wait):
            wait = self._seconds
            try:
                self._maintain()
                self.failed = None
            except Exception as error:  # the message may quote what is stored
                self.failed = error
                _LOG.warning("maintenance failed (%s), and runs again in %g s", type(error).__name__, wait)
