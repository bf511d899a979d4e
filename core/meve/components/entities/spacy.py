"""Entities by spaCy: by rules in a blank pipeline, which needs no download, or by a model that is installed.

spaCy is under the MIT licence: https://spacy.io (extra `spacy`).
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

from meve.components._model_errors import map_load_errors
from meve.errors import ConfigurationError, ModelError, wrap_errors, missing_extra
from meve.types import Entity

KINDS: Mapping[str, str] = {
    "PERSON": "name", "PER": "name", "ORG": "name", "GPE": "name", "LOC": "name", "FAC": "name", "NORP": "name",
    "PRODUCT": "name", "EVENT": "name", "WORK_OF_ART": "name", "LAW": "name", "LANGUAGE": "name", "MISC": "name",
    "DATE": "date", "TIME": "date",
    "MONEY": "quantity", "PERCENT": "quantity", "QUANTITY": "quantity", "CARDINAL": "quantity", "ORDINAL": "quantity",
}  # fmt: skip
"""What spaCy's labels are called here; others keep their name, in small letters."""

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
"""What the rules find unless told otherwise, in the notation of spaCy's EntityRuler."""

_ELSE = "'patterns', 'dates' or 'spacy-rules'"
"""What needs no model."""

_LONGEST = 900_000
"""Characters that are given to spaCy at once; its own bound is a million."""


class SpacyEntities:
    """What a spaCy pipeline finds. Threads may share one, and take turns.

    Args:
        nlp: a loaded pipeline.
        name: what it is called, for the trace.
    """

    def __init__(self, nlp: Any, *, name: str) -> None:  # noqa: ANN401 - spaCy's
        self._nlp = nlp
        self.name = name
        self._turn = threading.Lock()

    @classmethod
    def from_rules(cls, rules: Sequence[Mapping[str, Any]] = RULES, *, language: str = "en") -> Self:
        """A blank pipeline with rules: nothing is downloaded, and nothing learned.

        Args:
            rules: patterns in the notation of spaCy's EntityRuler: {"label": …, "pattern": …}.
            language: whose tokenizer; `xx` for any.

        Raises:
            MissingExtraError: spaCy isn't installed.
            ConfigurationError: rules, or a language, that spaCy doesn't know.
        """
        spacy = _spacy()
        with wrap_errors(ConfigurationError, f"making spaCy rules for {language!r}"):
            nlp = spacy.blank(language)
            nlp.add_pipe("entity_ruler", config={"validate": True}).add_patterns([dict(rule) for rule in rules])
        return cls(nlp, name=f"spacy-rules ({language})")

    @classmethod
    def from_name(cls, name: str) -> Self:
        """A model that is installed, or lies in a folder.

        Raises:
            MissingExtraError: spaCy isn't installed.
            ModelNotFoundError: no model of that name is installed.
            ModelError: it can't be loaded.
        """
        spacy = _spacy()
        with map_load_errors(name, f"install it with python -m spacy download {name}, or take {_ELSE}"):
            return cls(spacy.load(name), name=name)

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """The entities of each text, in the order given.

        Raises:
            ModelError: spaCy failed.
        """
        with self._turn, wrap_errors(ModelError, f"finding entities in {len(texts)} texts with {self.name!r}"):
            return [self._of(text) for text in texts]

    def _of(self, text: str) -> tuple[Entity, ...]:
        made: list[Entity] = []
        for at in range(0, len(text), _LONGEST):
            for span in self._nlp(text[at : at + _LONGEST]).ents:
                kind = KINDS.get(span.label_, span.label_.lower())
                made.append(Entity(kind=kind, text=span.text, start=at + span.start_char))
        return tuple(made)


def _spacy() -> Any:  # noqa: ANN401 - spaCy's
    try:
        import spacy
    except ImportError as cause:
        raise missing_extra("spacy", "spacy", "finding entities with spaCy") from cause
    return spacy
