"""The demo's text and questions: the Python language reference, which every Python contains."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from meve.errors import ConfigurationError
from meve.ingest import Chunker, Chunking, split_file
from meve.retrieval._snapshot import MANIFEST
from meve.retrieval.retriever import Retriever
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoQuestion:
    """A question of the demo."""

    text: str
    answerable: bool
    """Whether the language reference has the answer."""


DEMO_QUESTIONS = (
    DemoQuestion(text="What happens if no except clause matches the exception?", answerable=True),
    DemoQuestion(text="When does the else clause of a for loop run?", answerable=True),
    DemoQuestion(text="When are default argument values of a function evaluated?", answerable=True),
    DemoQuestion(text="How are chained comparisons evaluated?", answerable=True),
    DemoQuestion(text="At what temperature does water boil on top of a high mountain?", answerable=False),
)

EDITION = f"python {sys.version_info.major}.{sys.version_info.minor}"
"""The Python version of the language reference."""


def read_language_reference(count: Callable[[str], int]) -> list[Passage]:
    """Return the topics of the language reference, cut into passages under their headings.

    Args:
        count: the token counter.
    """
    from pydoc_data.topics import topics

    chunker = Chunker(Chunking(), count)
    return [passage for name in sorted(topics) for passage in split_file(topics[name], f"{name}.rst", chunker).passages]


def open_demo_index(folder: Path, progress: Callable[[int, int], None] | None = None) -> Retriever:
    """Return an index of the language reference, from the folder if an earlier demo saved it there.

    Args:
        folder: where the index is saved.
        progress: called with the number of embedded passages, and of all.

    Raises:
        ConfigurationError: the folder holds another index.
        StorageError: the folder holds something else, or can't be written.
        ModelError: the built-in models can't be loaded.
    """
    if (folder / MANIFEST).exists():
        retriever = Retriever.load(folder)
        if retriever.extra.get("demo") != EDITION:
            raise ConfigurationError(f"{folder} holds an index that isn't the demo's: name a new folder")
        return retriever
    retriever = Retriever.empty()
    passages = read_language_reference(retriever.tokens.count)
    if progress is not None:
        progress(0, len(passages))
    retriever.update(add=passages, progress=progress)
    retriever.save(folder, extra={"demo": EDITION})
    return retriever
