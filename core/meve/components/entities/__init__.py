"""Entity detectors: built-in patterns, a date parser, spaCy's rules or models, or several combined."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from meve.errors import ConfigurationError

if TYPE_CHECKING:
    from meve._extras import Needs
    from meve.ports import EntityDetector

__all__ = ["entities_needs", "resolve_entities"]

NAMED = ("patterns", "dates", "spacy-rules")


def resolve_entities(spec: "EntityDetector | str | Sequence[EntityDetector | str] | None" = None) -> "EntityDetector":
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
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, Sequence):
        from meve.components.entities.composite import CompositeEntities

        return CompositeEntities([resolve_entities(each) for each in spec])
    if isinstance(spec, type) or not all(hasattr(spec, part) for part in ("name", "detect")):
        raise ConfigurationError(
            f"entities must be a detector's name or an object with name and detect, got {spec!r:.80}"
        )
    return spec


def _named(name: str) -> "EntityDetector":
    if not name.strip():
        raise ConfigurationError(f"entities must not be empty: give {', '.join(NAMED)}, or a spaCy model's name")
    if name == "patterns":
        from meve.components.entities.patterns import PatternEntities

        return PatternEntities()
    if name == "dates":
        from meve.components.entities.dates import DateEntities

        return DateEntities()
    from meve.components.entities.spacy import SpacyEntities

    return SpacyEntities.from_rules() if name == "spacy-rules" else SpacyEntities.from_name(name)


def entities_needs(name: str | None) -> "Needs":
    """Return the packages that `resolve_entities` requires for a name.

    >>> entities_needs(None), entities_needs("dates"), entities_needs("spacy-rules")
    ({}, {'dateparser': 'dates'}, {'spacy': 'spacy'})
    """
    if name in (None, "patterns"):
        return {}
    return {"dateparser": "dates"} if name == "dates" else {"spacy": "spacy"}
