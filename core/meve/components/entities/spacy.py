"""Finds entities with spaCy: by rules in a blank pipeline, without a download, or by an installed model.

spaCy is under the MIT licence: https://spacy.io (extra `spacy`).
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

from meve._extras import require_imports
from meve.components._model_errors import map_load_errors
from meve.errors import ConfigurationError, ModelError, wrap_errors
from meve.types import Entity

KINDS: Mapping[str, str] = {
    "PERSON": "name", "PER": "name", "ORG": "name", "GPE": "name", "LOC": "name", "FAC": "name", "NORP": "name",
    "PRODUCT": "name", "EVENT": "name", "WORK_OF_ART": "name", "LAW": "name", "LANGUAGE": "name", "MISC": "name",
    "DATE": "date", "TIME": "date",
    "MONEY": "quantity", "PERCENT": "quantity", "QUANTITY": "quantity", "CARDINAL": "quantity", "ORDINAL": "quantity",
}  # fmt: skip
"""The entity kind of each spaCy label; other labels are lower-cased."""

_MONTHS = """
january february march april may june july august september october november december jan feb mar apr jun jul aug sep
sept oct nov dec
"""
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday yesterday tomorrow tonight"
_MONTH = {"LOWER": {"IN": _MONTHS.split()}}
_NUMERIC = r"^\d{4}-\d\d-\d\d$|^\d\d?[/.]\d\d?[/.]\d{2,4}$|^(?:1\d|20)\d\d$"
_NAME = {"TEXT": {"REGEX": "^[A-Z][a-z]+$"}, "IS_STOP": False}
_TITLES = "mr mrs ms dr prof mr. mrs. dr. prof."
_UNITS = """
% percent mg kg g km m cm ml l gb mb hours hour hrs minutes minute mins days day weeks week months month years year
miles dollars euros pounds
"""
RULES: tuple[Mapping[str, Any], ...] = (
    {"label": "DATE", "pattern": [{"IS_DIGIT": True, "OP": "?"}, _MONTH, {"LIKE_NUM": True}]},
    {"label": "DATE", "pattern": [{"IS_DIGIT": True}, _MONTH]},
    {"label": "DATE", "pattern": [{"TEXT": {"REGEX": _NUMERIC}}]},
    {"label": "DATE", "pattern": [{"LOWER": {"IN": _WEEKDAYS.split()}}]},
    {"label": "MONEY", "pattern": [{"IS_CURRENCY": True}, {"LIKE_NUM": True}]},
    {"label": "QUANTITY", "pattern": [{"LIKE_NUM": True}, {"LOWER": {"IN": _UNITS.split()}}]},
    {"label": "CARDINAL", "pattern": [{"IS_DIGIT": True}]},
    {"label": "PERSON", "pattern": [{"LOWER": {"IN": _TITLES.split()}}, {"IS_TITLE": True, "OP": "+"}]},
    {"label": "PERSON", "pattern": [_NAME, _NAME | {"OP": "+"}]},
    {"label": "ORG", "pattern": [{"IS_UPPER": True, "LENGTH": {">=": 2}, "IS_ALPHA": True}]},
)  # fmt: skip
"""The default rules, in the notation of spaCy's EntityRuler."""

_ELSE = "'patterns', 'dates' or 'spacy-rules'"
"""Detectors that need no model."""

_LONGEST = 900_000
"""Characters given to spaCy at once; its own limit is a million."""


class SpacyEntities:
    """Finds the entities that a spaCy pipeline finds. Threads may share it, and take turns.

    Args:
        nlp: a loaded pipeline.
        name: its name in the trace.
    """

    def __init__(self, nlp: Any, *, name: str) -> None:  # noqa: ANN401 - spaCy's
        self._nlp = nlp
        self.name = name
        self._lock = threading.Lock()

    @classmethod
    def from_rules(cls, rules: Sequence[Mapping[str, Any]] = RULES, *, language: str = "en") -> Self:
        """Make a blank pipeline with rules; nothing is downloaded.

        Args:
            rules: patterns in the notation of spaCy's EntityRuler: {"label": …, "pattern": …}.
            language: the tokenizer's language code; `xx` for any.

        Raises:
            MissingExtraError: spaCy isn't installed.
            ConfigurationError: spaCy doesn't know the rules or the language.
        """
        spacy = _spacy()
        with wrap_errors(ConfigurationError, f"making spaCy rules for {language!r}"):
            nlp = spacy.blank(language)
            nlp.add_pipe("entity_ruler", config={"validate": True}).add_patterns([dict(rule) for rule in rules])
        return cls(nlp, name=f"spacy-rules ({language})")

    @classmethod
    def from_name(cls, name: str) -> Self:
        """Load an installed model, or one in a folder.

        Raises:
            MissingExtraError: spaCy isn't installed.
            ModelNotFoundError: no model of that name is installed.
            ModelError: the model can't be loaded.
        """
        spacy = _spacy()
        with map_load_errors(name, f"install it with python -m spacy download {name}, or take {_ELSE}"):
            return cls(spacy.load(name), name=name)

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the entities of each text, in the order given.

        Raises:
            ModelError: spaCy failed.
        """
        with self._lock, wrap_errors(ModelError, f"finding entities in {len(texts)} texts with {self.name!r}"):
            return [self._detect_one(text) for text in texts]

    def _detect_one(self, text: str) -> tuple[Entity, ...]:
        entities: list[Entity] = []
        for at in range(0, len(text), _LONGEST):
            for span in self._nlp(text[at : at + _LONGEST]).ents:
                kind = KINDS.get(span.label_, span.label_.lower())
                entities.append(Entity(kind=kind, text=span.text, start=at + span.start_char))
        return tuple(entities)


def _spacy() -> Any:  # noqa: ANN401 - spaCy's
    with require_imports("finding entities with spaCy", {"spacy": "spacy"}):
        import spacy
    return spacy
