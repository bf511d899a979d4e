"""Save in a process to be killed."""

import builtins
import os
import pathlib
import shutil
import signal
import sys

from meve import Passage, Retriever
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


def retriever(generation):
    return Retriever.from_passages(
        [
            Passage(id=f"{n:03d}", text=f"word{n} generation{generation}", metadata={"generation": generation})
            for n in range(20 + generation % 7)
        ],
        embedder=WordEmbedder(),
        verifier=OverlapVerifier(),
        tokens=WordCounter(),
    )


def save(folder, generation):
    retriever(generation).save(folder, extra={"generation": generation})


def die_before(step):
    """Count each call that changes the disk, and kill the process before the given one."""
    left = [step]

    def counted(call):
        def wrapper(*args, **kwargs):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return wrapper

    for owner, names in (
        (os, ("replace", "fsync", "rename", "unlink", "mkdir", "rmdir", "open")),
        (pathlib.Path, ("write_text", "mkdir", "unlink", "open")),
        (shutil, ("rmtree",)),
        (builtins, ("open",)),
    ):
        for name in names:
            setattr(owner, name, counted(getattr(owner, name)))


def save_forever(folder, generation):
    """Print each saved generation."""
    while True:
        save(folder, generation)
        sys.stdout.write(f"{generation}\n")
        sys.stdout.flush()
        generation += 1


def save_until(step, folder, generation):
    """Kill the process with SIGKILL before its nth call that touches the disk."""
    ready = retriever(generation)
    die_before(step)
    ready.save(folder, extra={"generation": generation})
