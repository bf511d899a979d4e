"""Entity detectors: patterns that need nothing, a parser of dates, spaCy's rules, spaCy's models, several together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from meve.errors import ConfigurationError

if TYPE_CHECKING:
    from meve._extras import Needs
    from meve.ports import EntityDetector

__all__ = ["entities_needs", "resolve_entities"]

NAMED = ("patterns", "dates", "spacy-rules")


def resolve_entities(spec: "EntityDetector | str | Sequence[EntityDetector | str] | None" = None) -> "EntityDetector":
    """The detector that was meant.

    Args:
        spec: None or `patterns` for the one that ships and needs nothing; `dates` for dateparser, of the extra `dates`;
            `spacy-rules` for rules in spaCy's engine, of the extra `spacy`, without a download; another name, or a
            folder, for that spaCy model; an object of your own; or a list of these, whose findings are put together.

    Raises:
        ConfigurationError: something else, an empty name or an empty list.
        MissingExtraError: its packages aren't installed.
        ModelNotFoundError: no spaCy model of that name is installed.
    """
    if spec is None:
        spec = "patterns"
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, Sequence):
        from meve.components.entities.composite import SeveralEntities

        return SeveralEntities([resolve_entities(each) for each in spec])
    if isinstance(spec, type) or not all(hasattr(spec, part) for part in ("name", "detect")):
        raise ConfigurationError(f"entities is {spec!r:.80}: give a detector's name, an object with name and detect")
    return spec


def _named(name: str) -> "EntityDetector":
    if not name.strip():
        raise ConfigurationError(f"entities is an empty name: give {', '.join(NAMED)}, or a spaCy model's name")
    if name == "patterns":
        from meve.components.entities.patterns import PatternEntities

        return PatternEntities()
    if name == "dates":
        from meve.components.entities.dates import DateEntities

        return DateEntities()
    from meve.components.entities.spacy import SpacyEntities

    return SpacyEntities.from_rules() if name == "spacy-rules" else SpacyEntities.from_name(name)


def entities_needs(name: str | None) -> "Needs":
    """What must be installed for a detector of that name, as for `resolve_entities`.

    >>> entities_needs(None), entities_needs("dates"), entities_needs("spacy-rules")
    ({}, {'dateparser': 'dates'}, {'spacy': 'spacy'})
    """
    if name in (None, "patterns"):
        return {}
    return {"dateparser": "dates"} if name == "dates" else {"spacy": "spacy"}
