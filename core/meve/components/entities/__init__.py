"""Entity detectors: built-in patterns, a date parser, spaCy's rules or models, or several combined."""

from collections.abc import Sequence
from typing import TypeAlias

from meve._extras import Needs
from meve.components._component_check import check_component
from meve.errors import ConfigurationError
from meve.ports import EntityDetector

__all__ = ["EntityDetectorLike", "entities_needs", "resolve_entities"]

EntityDetectorLike: TypeAlias = EntityDetector | str | Sequence[EntityDetector | str]
"""An entity detector, its name, or a list of both, whose results are combined."""

NAMED = ("patterns", "dates", "spacy-rules")


def resolve_entities(spec: EntityDetectorLike | None = None) -> EntityDetector:
    """Return the entity detector for a setting.

    Args:
        spec: None or `patterns` for the built-in patterns; `dates` for dateparser (extra `dates`); `spacy-rules` for
            rules in spaCy (extra `spacy`), without a download; another name or folder for that spaCy model; your own
            detector object; or a list of these, whose results are combined.

    Raises:
        ConfigurationError: an empty name, an empty list or another value.
        MissingExtraError: its packages aren't installed.
        ModelNotFoundError: no spaCy model of that name is installed.
    """
    if spec is None:
        spec = "patterns"
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        from meve.components.entities.composite import CompositeEntities

        return CompositeEntities([resolve_entities(each) for each in spec])
    if not isinstance(spec, str):
        return check_component(spec, "entities", EntityDetector)
    if not spec.strip():
        raise ConfigurationError(f"entities must not be empty: give {', '.join(NAMED)}, or a spaCy model's name")
    if spec == "patterns":
        from meve.components.entities.patterns import PatternEntities

        return PatternEntities()
    if spec == "dates":
        from meve.components.entities.dates import DateEntities

        return DateEntities()
    from meve.components.entities.spacy import SpacyEntities

    return SpacyEntities.from_rules() if spec == "spacy-rules" else SpacyEntities.from_name(spec)


def entities_needs(name: str | None) -> Needs:
    """Return the packages that `resolve_entities` requires for a name.

    >>> entities_needs(None), entities_needs("dates"), entities_needs("spacy-rules")
    ({}, {'dateparser': 'dates'}, {'spacy': 'spacy'})
    """
    if name in (None, "patterns"):
        return {}
    return {"dateparser": "dates"} if name == "dates" else {"spacy": "spacy"}
