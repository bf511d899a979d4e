"""A server of the command line, as a process of its own."""

import re
import subprocess
import sys
from contextlib import contextmanager

MEVE = [sys.executable, "-c", "from meve.cli import main; main()"]


@contextmanager
def served_process(*arguments, says, log, environment):
    """Run a command of `meve`; yield the process and the URL in the first line that it prints.

    Args:
        arguments: of the command line.
        says: a pattern of that line; its first group is the URL.
        log: the file for its errors.
        environment: all of its environment variables.
    """
    with log.open("a") as errors:
        process = subprocess.Popen(
            [*MEVE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
    try:
        line = process.stdout.readline()
        match = re.match(says, line)
        assert match, (line, log.read_text())
        yield process, match[1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
