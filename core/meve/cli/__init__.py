"""The command line: `meve index`, `ask`, `calibrate`, `info`, `demo`.

Exit status: 0, done; 1, a `MeveError`, told on stderr as `error: …`; 2, a command line that can't be understood.
"""

from meve.cli.app import main

__all__ = ["main"]
