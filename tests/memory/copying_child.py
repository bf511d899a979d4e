"""Copies a memory, and is killed at the n-th call of a function."""

import importlib
import os
import signal

from meve.memory import copy_memory
from tests.memories import KEY, as_place, place_of


def kill_at(where, count):
    module, owner, name = where.split(":")
    holder = getattr(importlib.import_module(module), owner)
    inner, calls = getattr(holder, name), iter(range(1, count))

    def call(*arguments, **options):
        if next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments, **options)

    setattr(holder, name, call)


def copy_and_die(source, target, where, count):
    kill_at(where, count)
    copy_memory(place_of(as_place(source)), place_of(as_place(target)), audit_key=KEY)
