"""Several detectors as one: what each finds, put together."""

from collections.abc import Sequence

from meve.errors import ConfigurationError
from meve.ports import EntityDetector
from meve.types import Entity


class SeveralEntities:
    """What any of some detectors finds; where two find overlapping stretches, that of the earlier named stays.

    Raises:
        ConfigurationError: none are given.
    """

    def __init__(self, detectors: Sequence[EntityDetector]) -> None:
        if not detectors:
            raise ConfigurationError("an empty list of entity detectors finds nothing: give at least one")
        self.detectors = tuple(detectors)

    @property
    def name(self) -> str:
        """The names of all of them."""
        return "+".join(detector.name for detector in self.detectors)

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """The entities of each text, in the order given."""
        found = [detector.detect(texts) for detector in self.detectors]
        return [apart([entity for mine in each for entity in mine]) for each in zip(*found, strict=True)]


def apart(entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """Those that don't overlap one that was named before, by where they begin.

    >>> one = Entity(kind="date", text="2024", start=3)
    >>> apart([one, Entity(kind="quantity", text="24", start=5)]) == (one,)
    True
    """
    taken = bytearray(max((entity.start + len(entity.text) for entity in entities), default=0))
    kept: list[Entity] = []
    for entity in entities:
        end = entity.start + len(entity.text)
        if not any(taken[entity.start : end]):
            taken[entity.start : end] = b"\1" * len(entity.text)
            kept.append(entity)
    return tuple(sorted(kept, key=lambda entity: entity.start))
