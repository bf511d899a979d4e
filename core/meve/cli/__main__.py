"""Runs `meve` as `python -m meve.cli`."""

from meve.cli.app import main

if __name__ == "__main__":
    main()
