"""Give passages from different sources different ids."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from meve.types import Passage

P = TypeVar("P", bound=Passage)


def tell_apart(passages: Iterable[P]) -> list[P]:
    """Return passages that differ by id; one whose id another text has already gets a number behind it.

    Retrievers over several stores may return different texts of one id. Of passages with the same id and text, the
    first counts.

    >>> [each.id for each in tell_apart([Passage(id="1", text="Sky"), Passage(id="1", text="Sea")])]
    ['1', '1#2']
    """
    known: dict[str, P] = {}
    for passage in passages:
        name, times = passage.id, 1
        while name in known and known[name].text != passage.text:
            times += 1
            name = f"{passage.id}#{times}"
        known.setdefault(name, passage if times == 1 else replace(passage, id=name))
    return list(known.values())
