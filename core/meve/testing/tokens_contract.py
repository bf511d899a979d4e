"""What every token counter must do: inherit `TokenCounterContract`, override `counter`, and pytest does the rest."""

from concurrent.futures import ThreadPoolExecutor

from meve._extras import require_imports
from meve.ports import TokenCounter
from meve.testing import NEEDS, SUITE

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import given, settings
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
"""Empty, plain, foreign, special, spaced, long."""


class TokenCounterContract:
    """Rules for a `meve.ports.TokenCounter`."""

    @pytest.fixture
    def counter(self) -> TokenCounter:
        """Override: the counter under test."""
        raise NotImplementedError("a contract test must override counter")

    def test_it_has_a_name(self, counter: TokenCounter) -> None:
        """Its name isn't empty, and stays the same."""
        assert counter.name
        assert counter.name == counter.name

    def test_an_empty_text_has_no_tokens(self, counter: TokenCounter) -> None:
        """Nothing is added around a text: the empty one counts 0."""
        assert counter.count("") == 0

    @pytest.mark.parametrize("text", TEXTS)
    def test_any_text_has_a_count(self, counter: TokenCounter, text: str) -> None:
        """Every text has a whole number of tokens, not negative, and always the same."""
        count = counter.count(text)
        assert type(count) is int
        assert count >= 0
        assert counter.count(text) == count

    def test_many_count_as_each_alone(self, counter: TokenCounter) -> None:
        """Counting many at once gives what counting each gives, in the order given: nothing is padded."""
        assert counter.count_many(TEXTS) == [counter.count(text) for text in TEXTS]
        assert counter.count_many([]) == []
        assert counter.count_many(tuple(TEXTS[:1])) == [0]

    def test_long_texts_are_not_cut(self, counter: TokenCounter) -> None:
        """Twice the text has about twice the tokens, beyond any model's window."""
        half, whole = counter.count("moon light " * 2_000), counter.count("moon light " * 4_000)
        assert half >= 2_000
        assert whole == pytest.approx(2 * half, rel=0.01)

    def test_threads_may_count_at_once(self, counter: TokenCounter) -> None:
        """Counting in several threads gives what counting in one gives."""
        expected = [counter.count(text) for text in TEXTS]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(counter.count, TEXTS * 10)) == expected * 10
            assert list(pool.map(lambda _: counter.count_many(TEXTS), range(8))) == [expected] * 8

    def test_random_texts_count_alike(self, counter: TokenCounter) -> None:
        """For any texts, count_many agrees with count."""

        @settings(max_examples=25, deadline=None)
        @given(st.lists(st.text(max_size=60), max_size=6))
        def agree(texts: list[str]) -> None:
            assert counter.count_many(texts) == [counter.count(text) for text in texts]

        agree()

    def test_what_is_said_to_add_up_does(self, counter: TokenCounter) -> None:
        """Where a counter says so, pieces between white space have as many tokens together as apart."""
        if not getattr(counter, "adds_up", False):
            pytest.skip(f"{counter.name} doesn't say that its counts add up")

        @settings(max_examples=50, deadline=None)
        @given(st.lists(st.text(max_size=40) | st.sampled_from(TEXTS[:-2]), max_size=5), st.sampled_from(" \n\t\r"))
        def add_up(texts: list[str], space: str) -> None:
            assert counter.count(space.join(texts)) == sum(counter.count_many(texts))

        add_up()
