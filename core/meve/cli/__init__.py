"""The `meve` command.

Exit status: 0 for success; 1 for a `MeveError`, printed on stderr as `error: …`; 2 for an invalid command line.
"""

from meve.cli.app import main

__all__ = ["main"]
