"""Processes that needn't import anything first: forks of one that has imported it and is idle."""

import multiprocessing
import os
import sys
from contextlib import contextmanager

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "tests.memory.writing_child",
        "tests.memory.maintaining_child",
        "tests.memory.copying_child",
        "tests.memory.searching_child",
        "tests.retrieval.saving_child",
    ]
)


@contextmanager
def warm_process(run, *arguments):
    """Call a function of a module in a process, and kill it at the end; yield it, and the stream of what it prints."""
    reader, writer = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_run, args=(writer, run, *arguments), daemon=True)
    process.start()
    writer.close()
    with reader, open(os.dup(reader.fileno()), encoding="utf-8") as output:
        try:
            yield process, output
        finally:
            process.kill()
            process.join()


def run_code(code, *arguments):
    """Run code with the arguments of a command line; return its exit code, and what it printed."""
    with warm_process(execute, code, *arguments) as (process, output):
        printed = output.read()
        process.join()
        return process.exitcode, printed


def execute(code, *arguments):
    """Run code in this process, as `python -c` does."""
    sys.argv = ["-c", *map(str, arguments)]
    exec(code, {"__name__": "__main__"})


def _run(writer, run, *arguments):
    for stream in (1, 2):
        os.dup2(writer.fileno(), stream)
    writer.close()
    run(*arguments)
