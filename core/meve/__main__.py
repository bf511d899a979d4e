"""Runs `meve` as `python -m meve`."""

from meve.cli import main

if __name__ == "__main__":
    main()
