"""Save in a process to be killed: `once N`, `forever N` (prints each saved N), or `steps N`.

`steps` reads folders from stdin. For the Kth it forks a process that saves there, and that kills itself with SIGKILL
before its Kth call that touches the disk; it prints the exit status of each.
"""

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


def main():
    folder, what, generation = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "once":
        save(folder, generation)
    elif what == "forever":
        while True:
            save(folder, generation)
            sys.stdout.write(f"{generation}\n")
            sys.stdout.flush()
            generation += 1
    else:
        ready = retriever(generation)
        for step, line in enumerate(sys.stdin, start=1):
            pid = os.fork()
            if not pid:
                die_before(step)
                ready.save(line.strip(), extra={"generation": generation})
                os._exit(0)
            sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
