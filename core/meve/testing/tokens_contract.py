"""The contract of token counters. Inherit `TokenCounterContract`, override `counter`, and run pytest."""

from concurrent.futures import ThreadPoolExecutor

from meve._extras import require_imports
from meve.ports import TokenCounter
from meve.testing import NEEDS, SUITE

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import example, given, settings
    from hypothesis import strategies as st

TEXTS = [
    "",
    " ",
    "The moon orbits the earth.",
    "Größenwahn, naïveté, 東京タワー, नमस्ते, 🌍🚀, \u0000",
    "<|endoftext|> [SEP] <s> </s> [PAD]",
    "tab\tand\nline\r\n\n",
    "word " * 3_000,
    "x" * 500,
]
"""Texts that are empty, plain, in other scripts, with special tokens, with white space, and long."""


class TokenCounterContract:
    """The rules of `meve.ports.TokenCounter`."""

    @pytest.fixture
    def counter(self) -> TokenCounter:
        """Return the counter under test."""
        raise NotImplementedError("override the fixture `counter`")

    def test_name_is_not_blank(self, counter: TokenCounter) -> None:
        assert isinstance(counter.name, str)
        assert counter.name.strip()

    def test_empty_text_has_no_tokens(self, counter: TokenCounter) -> None:
        assert counter.count("") == 0

    @pytest.mark.parametrize("text", TEXTS)
    def test_every_text_has_a_stable_count(self, counter: TokenCounter, text: str) -> None:
        count = counter.count(text)
        assert type(count) is int
        assert count >= 0
        assert counter.count(text) == count

    def test_long_text_is_counted_to_its_end(self, counter: TokenCounter) -> None:
        half, whole = counter.count("moon light " * 2_000), counter.count("moon light " * 4_000)
        assert half >= 2_000
        assert whole == pytest.approx(2 * half, rel=0.01)

    def test_concurrent_counts_are_equal(self, counter: TokenCounter) -> None:
        expected = [counter.count(text) for text in TEXTS]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(counter.count, TEXTS * 10)) == expected * 10
            assert list(pool.map(lambda _: counter.count_many(TEXTS), range(8))) == [expected] * 8

    def test_count_many_matches_count(self, counter: TokenCounter) -> None:
        assert counter.count_many(tuple(TEXTS[:1])) == [0]

        @settings(max_examples=25, deadline=None)
        @given(st.lists(st.text(max_size=60), max_size=6))
        @example(TEXTS)
        @example([])
        def agree(texts: list[str]) -> None:
            assert counter.count_many(texts) == [counter.count(text) for text in texts]

        agree()

    def test_declared_additive_counts_add_up(self, counter: TokenCounter) -> None:
        if not getattr(counter, "adds_up", False):
            pytest.skip(f"{counter.name} doesn't say that its counts add up")

        @settings(max_examples=50, deadline=None)
        @given(st.lists(st.text(max_size=40) | st.sampled_from(TEXTS[:-2]), max_size=5), st.sampled_from(" \n\t\r"))
        def add_up(texts: list[str], space: str) -> None:
            assert counter.count(space.join(texts)) == sum(counter.count_many(texts))

        add_up()
