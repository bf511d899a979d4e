"""The contract of entity detectors. Inherit `EntityDetectorContract`, override `detector`, and run pytest."""

from concurrent.futures import ThreadPoolExecutor

from meve._extras import require_imports
from meve.ports import EntityDetector
from meve.testing import NEEDS, SUITE

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

TEXTS = [
    "",
    " ",
    "ok",
    "Patient A stopped taking medication in February 2024, 20 mg a day.",
    "Größe, naïveté, 東京タワー, नमस्ते, Привет, مرحبا, 🌍🚀, \u0000",
    "(a+)+$ [x]{2,} %s {0} \\d <b> & \"'`",
    "tab\tand\nline\r\n\n",
    "word " * 300,
    "A" * 3_000,
]
"""Texts that are empty, plain, in other scripts, of special characters, with white space, and long."""


class EntityDetectorContract:
    """The rules of `meve.ports.EntityDetector`."""

    known = "We met Dr. Jane Smith on 3 March 2021."
    """A text with an entity that the detector finds; override it for other kinds of entities."""

    @pytest.fixture
    def detector(self) -> EntityDetector:
        """Return the detector under test."""
        raise NotImplementedError("override the fixture `detector`")

    def test_name_is_not_blank(self, detector: EntityDetector) -> None:
        assert detector.name
        assert detector.name == detector.name

    def test_known_entity_is_found_and_blank_text_has_none(self, detector: EntityDetector) -> None:
        result, blank, empty = detector.detect([self.known, "  ", ""])
        assert result
        assert blank == empty == ()

    def test_entity_text_matches_its_position(self, detector: EntityDetector) -> None:
        for text, entities in zip(TEXTS, detector.detect(TEXTS), strict=True):
            end = 0
            for entity in entities:
                assert entity.kind
                assert entity.text
                assert text[entity.start : entity.start + len(entity.text)] == entity.text
                assert entity.start >= end
                end = entity.start + len(entity.text)

    def test_batch_gives_same_entities_as_single_texts(self, detector: EntityDetector) -> None:
        together = detector.detect([*TEXTS, self.known])
        assert together == [detector.detect([text])[0] for text in [*TEXTS, self.known]]
        assert detector.detect([]) == []

    def test_concurrent_detection_gives_same_results(self, detector: EntityDetector) -> None:
        expected = detector.detect([self.known, *TEXTS[:4]])
        with ThreadPoolExecutor(4) as pool:
            result = list(pool.map(detector.detect, [[self.known, *TEXTS[:4]]] * 8))
        assert result == [expected] * 8

    def test_random_text_never_raises(self, detector: EntityDetector) -> None:

        @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.text(max_size=80))
        def check_positions(text: str) -> None:
            (result,) = detector.detect([text])
            assert all(text[e.start : e.start + len(e.text)] == e.text for e in result)

        check_positions()
