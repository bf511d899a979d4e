"""Arguments of `meve bench` that need more than a type."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer


def add_working_directory(functions: object) -> None:
    """Let `module:function` name a module in the working directory."""
    if functions:
        sys.path.insert(0, os.getcwd())


def split_names(text: str) -> tuple[str, ...]:
    """Return comma-separated names, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def check_data_folder(data: Path | None, sets: Sequence[str], hint: str = "") -> Path:
    """Return the folder of the sets; the set `own` comes with the package and needs none."""
    if data is None and set(sets) != {"own"}:
        raise typer.BadParameter(f"--data DIR is missing: the folder with a folder for each set{hint}")
    return data or Path()


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return comma-separated whole numbers, such as `10_000,30000`."""
    try:
        return tuple(int(size) for size in text.replace("_", "").split(",") if size.strip())
    except ValueError as cause:
        raise typer.BadParameter(f"sizes must be comma-separated whole numbers, got {text!r}") from cause
