"""Combines the results of several entity detectors."""

from collections.abc import Sequence

from meve.errors import ConfigurationError
from meve.ports import EntityDetector
from meve.types import Entity


class CompositeEntities:
    """Combines several detectors; where entities overlap, the one of the earlier detector stays.

    Raises:
        ConfigurationError: no detectors are given.
    """

    def __init__(self, detectors: Sequence[EntityDetector]) -> None:
        if not detectors:
            raise ConfigurationError("entities must not be an empty list: give at least one detector")
        self.detectors = tuple(detectors)

    @property
    def name(self) -> str:
        """The names of the detectors, joined by +."""
        return "+".join(detector.name for detector in self.detectors)

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the entities of each text, in the order given."""
        entity_lists = [detector.detect(texts) for detector in self.detectors]
        return [
            remove_overlaps([entity for mine in each for entity in mine]) for each in zip(*entity_lists, strict=True)
        ]


def remove_overlaps(entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """Return the entities that don't overlap an earlier one in the list, ordered by position.

    >>> one = Entity(kind="date", text="2024", start=3)
    >>> remove_overlaps([one, Entity(kind="quantity", text="24", start=5)]) == (one,)
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
