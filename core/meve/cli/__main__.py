"""`python -m meve.cli` is `meve`."""

from meve.cli.app import main

if __name__ == "__main__":
    main()
