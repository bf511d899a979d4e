"""What every entity detector must do: inherit `EntityDetectorContract`, override `detector`; pytest does the rest."""

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
"""Empty, plain, foreign, of signs, spaced, long."""


class EntityDetectorContract:
    """Rules for a `meve.ports.EntityDetector`."""

    known = "We met Dr. Jane Smith on 3 March 2021."
    """A text in which it finds something; override it for one that looks for other things."""

    @pytest.fixture
    def detector(self) -> EntityDetector:
        """Override: the detector under test."""
        raise NotImplementedError("a contract test must override detector")

    def test_it_has_a_name(self, detector: EntityDetector) -> None:
        """Its name isn't empty, and stays the same."""
        assert detector.name
        assert detector.name == detector.name

    def test_it_finds_what_it_is_for(self, detector: EntityDetector) -> None:
        """Something in the text that it must know, and nothing in a blank one."""
        found, blank, empty = detector.detect([self.known, "  ", ""])
        assert found
        assert blank == empty == ()

    def test_each_stands_where_it_says(self, detector: EntityDetector) -> None:
        """An entity's text is what the text holds at its place; they are in order, and don't overlap."""
        for text, entities in zip(TEXTS, detector.detect(TEXTS), strict=True):
            end = 0
            for entity in entities:
                assert entity.kind
                assert entity.text
                assert text[entity.start : entity.start + len(entity.text)] == entity.text
                assert entity.start >= end
                end = entity.start + len(entity.text)

    def test_many_are_found_as_each_alone(self, detector: EntityDetector) -> None:
        """Texts don't influence one another, and the same text has always the same entities."""
        together = detector.detect([*TEXTS, self.known])
        assert together == [detector.detect([text])[0] for text in [*TEXTS, self.known]]
        assert detector.detect([]) == []

    def test_threads_may_share_it(self, detector: EntityDetector) -> None:
        """In several threads it finds what it finds in one."""
        expected = detector.detect([self.known, *TEXTS[:4]])
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(detector.detect, [[self.known, *TEXTS[:4]]] * 8))
        assert found == [expected] * 8

    def test_any_text_will_do(self, detector: EntityDetector) -> None:
        """Whatever the text, nothing is raised, and what is found stands there."""

        @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.text(max_size=80))
        def stands(text: str) -> None:
            (found,) = detector.detect([text])
            assert all(text[e.start : e.start + len(e.text)] == e.text for e in found)

        stands()
