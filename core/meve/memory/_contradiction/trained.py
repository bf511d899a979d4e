"""Judges updates by rules and by a model that ships with the package, for English."""

import hashlib
import json
import logging
import re
from dataclasses import replace
from difflib import SequenceMatcher

from cachetools import LRUCache

from meve._fork_safety import ForkSafeLock
from meve.components.verifiers.update_model import load_update_model
from meve.errors import ConfigurationError, ModelError, QueryError, wrap_errors
from meve.memory._contradiction.lexicon import HEALTH
from meve.memory._contradiction.rules import Contradiction
from meve.memory._contradiction.statements import Statement
from meve.memory._contradiction.updates import DIFFERENT, RuleUpdateJudge, UpdateVerdict

logger = logging.getLogger("meve")
ALONE = 0.92
"""The least probability at which the model alone decides that a newer statement replaces an older one."""
AGREED = 0.65
"""The least probability at which a verdict of the rules holds."""
NEAR = 2
"""The number of words in which two statements may differ and yet be judged by the rules alone: "class 2b" and "2c"."""
SIMPLE = 12
"""The most words, without articles, of an older statement that the model alone replaces: a longer one tells more."""
_CLAUSE_MARK = re.compile(r"[,;:(\u2013]| - ")
"""Signs between clauses."""
_CACHED = 200_000


class TrainedUpdateJudge(RuleUpdateJudge):
    """Judges by rules and by the bundled model, which estimates whether a newer statement ends what an older one tells.

    Rules alone decide whether two statements say the same. A newer one replaces an older one if the model is sure of
    it, or if the rules say so and the model finds it likely. Only what the rules find counts of statements that differ
    in a word or two, since the model takes other things of a kind for changes there; and of an older one that is long,
    has several clauses, or tells of an allergy or a chronic illness. Each pair is read once.

    Args:
        contradiction: detects contradictions for the rules; `RuleContradiction` if None.
        alone: the least probability at which the model decides alone, in [0, 1].
        agreed: the least probability at which a verdict of the rules holds, in [0, 1]; at most `alone`.

    Raises:
        ConfigurationError: a probability is out of range.
    """

    def __init__(
        self, contradiction: Contradiction | None = None, *, alone: float = ALONE, agreed: float = AGREED
    ) -> None:
        if not 0 <= agreed <= alone <= 1:
            raise ConfigurationError(
                f"agreed and alone must be in [0, 1], agreed not above alone; got {agreed!r} and {alone!r}"
            )
        super().__init__(contradiction)
        self._alone, self._agreed = alone, agreed
        self._known: LRUCache[bytes, float] = LRUCache(_CACHED)
        self._lock = ForkSafeLock()

    def compare_statements(self, older: Statement, newer: Statement, *, are_similar: bool = True) -> UpdateVerdict:
        """Return the relation of parsed statements; only statements with a similar embedding are read by the model.

        Raises:
            ModelError: the model failed.
        """
        verdict = super().compare_statements(older, newer, are_similar=are_similar)
        if verdict.relation == "same" or not (are_similar or verdict.relation == "replaces"):
            return verdict
        is_found = verdict.relation == "replaces"
        if _are_near(older, newer) or not (is_found or _may_decide(older)):
            return verdict
        probability = self._estimate(older.text, newer.text)
        if probability < (self._agreed if is_found else self._alone):
            return DIFFERENT
        return UpdateVerdict(relation="replaces", reason=verdict.reason or "claim", probability=probability)

    def compare_in_search(self, older: Statement, newer: Statement) -> UpdateVerdict:
        """Return what the rules find, if the model finds it likely; the model reads nothing else in a search.

        If the model fails, both memories are shown.
        """
        verdict = super().compare_in_search(older, newer)
        if verdict.relation != "replaces" or _are_near(older, newer):
            return verdict
        try:
            probability = self._estimate(older.text, newer.text)
        except ModelError as error:
            logger.warning("a search shows both of two memories, since the model of updates failed: %s", error)
            return DIFFERENT
        return replace(verdict, probability=probability) if probability >= self._agreed else DIFFERENT

    def _estimate(self, older: str, newer: str) -> float:
        """Return the probability that the newer statement ends the older one; 0 for one too long to be read."""
        key = hashlib.sha256(json.dumps([older, newer]).encode()).digest()  # no text outlives its erasure
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return known
        with wrap_errors(ModelError, "reading two memories with the model of updates"):
            try:
                probability = float(load_update_model().score(older, [newer])[0])
            except QueryError:
                probability = 0.0
        with self._lock:
            self._known[key] = probability
        return probability


def _may_decide(older: Statement) -> bool:
    """Return whether the model alone may find that another statement replaces this one."""
    words = older.claim.words
    tells_one_thing = len(words) <= SIMPLE and _CLAUSE_MARK.search(older.text) is None
    return tells_one_thing and HEALTH.isdisjoint(words)


def _are_near(one: Statement, other: Statement) -> bool:
    """Return whether two statements have the same words in the same order, but for one or two."""
    blocks = SequenceMatcher(None, one.claim.words, other.claim.words, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for kind, a, b, c, d in blocks if kind != "equal") <= NEAR
