"""Test the token counters."""

import json
import random
import socket
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import NFKC
from tokenizers.pre_tokenizers import ByteLevel, Whitespace

from meve.components.embedders.minilm import minilm_folder
from meve.components.tokenizers import huggingface, resolve_tokens
from meve.components.tokenizers.function import FunctionTokens
from meve.components.tokenizers.huggingface import HuggingFaceTokens, load_minilm_tokens
from meve.components.tokenizers.tiktoken import TiktokenTokens, get_cache_folder
from meve.errors import ConfigurationError, TokenizerUnavailableError
from meve.testing.fakes import WordCounter
from meve.testing.tokens_contract import TokenCounterContract

TABLES = Path(__file__).parents[3] / "shared" / "data" / "tokenizers" / "tiktoken_cache"


@pytest.fixture
def tables(monkeypatch):
    """Use tiktoken's tables from the shared data."""
    if not TABLES.is_dir():
        pytest.skip(f"no tiktoken tables at {TABLES}")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(TABLES))


@pytest.fixture
def no_tables(monkeypatch, tmp_path):
    """Remove all tables and loaded encodings, and let a network connection fail the test."""
    from tiktoken import registry

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(registry, "ENCODINGS", {})

    def refuse(*args, **kwargs):
        pytest.fail("tried to reach a network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return tmp_path


def padded_and_cut():
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "moon": 1, "light": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(4)
    return tokenizer


COUNTERS = {
    "minilm": load_minilm_tokens,
    "hugging face": lambda: HuggingFaceTokens(padded_and_cut(), "words"),
    "function": lambda: FunctionTokens(lambda text: len(text.split()), "words"),
    "fake": WordCounter,
}


class TestCounters(TokenCounterContract):
    @pytest.fixture(params=COUNTERS)
    def counter(self, request):
        return COUNTERS[request.param]()


@pytest.mark.shared
@pytest.mark.parametrize("encoding", ["gpt2", "cl100k_base", "o200k_base"])
class TestTiktoken(TokenCounterContract):
    @pytest.fixture
    def counter(self, encoding, tables):
        return TiktokenTokens(encoding)


def test_given_tokenizer_is_not_changed():
    tokenizer = padded_and_cut()
    assert HuggingFaceTokens(tokenizer, "words").count("moon " * 9) == 9
    assert len(tokenizer.encode("moon " * 9).ids) == 8


def test_minilm_counts_word_pieces():
    """As in BERT: em ##bed ##ding ##s, without [CLS]."""
    assert load_minilm_tokens().count("Embeddings!") == 5


def test_minilm_counts_as_the_model_reads():
    published = HuggingFaceTokens.from_file(minilm_folder())
    texts = ["Zürich's café, 50 % off!", "naïve 東京 ﬁne", "x" * 150, "[SEP] tabs\tand\nlines", ""]
    assert load_minilm_tokens().count_many(texts) == published.count_many(texts)


def test_tokenizer_across_white_space_is_not_additive():
    words = {"[UNK]": 0, "moon": 1}
    spaced = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    spaced.pre_tokenizer = Whitespace()
    assert HuggingFaceTokens(spaced, "words").adds_up
    spaced.normalizer = NFKC()
    assert not HuggingFaceTokens(spaced, "normalized").adds_up
    bytewise = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    assert not HuggingFaceTokens(bytewise, "whole").adds_up
    bytewise.pre_tokenizer = ByteLevel()
    assert not HuggingFaceTokens(bytewise, "bytes").adds_up


def test_added_token_with_a_space_makes_counts_not_additive():
    spaced = Tokenizer(WordLevel({"[UNK]": 0, "moon": 1}, unk_token="[UNK]"))
    spaced.pre_tokenizer = Whitespace()
    spaced.add_tokens(["new moon"])
    counter = HuggingFaceTokens(spaced, "words")
    assert not counter.adds_up
    assert counter.count("a new moon") == 2


def test_counts_stay_equal_when_most_pieces_are_known(monkeypatch):
    """Short pieces are counted once, long ones each time, and what is known is forgotten before it is too much."""
    monkeypatch.setattr(huggingface, "_MOST_KNOWN", 60)
    counter = HuggingFaceTokens.from_file(huggingface._SHIPPED)
    rng = random.Random(2)
    pieces = [
        "Zürich's",
        "café,",
        "x" * 150,
        "naïve",
        "東京",
        "ﬁne",
        "[SEP]",
        "\u0301",
        "a\u00a0b",
        "a\x1cb",
        "\u2028",
        "1,000",
    ]
    for _ in range(300):
        text = "".join(
            rng.choice([*pieces, str(rng.random())]) + rng.choice(" \t\r\n") * rng.randint(0, 2) for _ in range(9)
        )
        assert counter.count_many([text, "moon"]) == counter._encode([text, "moon"]), text
        assert len(counter._known) <= 60
    assert not any(len(piece) > 20 for piece in counter._known)


def test_words_and_marks_of_ascii_texts_are_counted_as_the_model_reads():
    """Control characters join words, [SEP] is one token and [sep] three, and a word of over 100 letters is one."""
    counter = load_minilm_tokens()
    rng = random.Random(3)
    pieces = [
        "".join(map(chr, range(256))),
        "[SEP]",
        "[sep]",
        "X" * 101,
        "x" * 100,
        "it's",
        "a_b-c",
        "a\x00b",
        "C:\\d",
        "İı",
        "ſ\u212a",
    ]
    texts = ["".join(rng.choice([*pieces, chr(rng.randrange(128))]) for _ in range(6)) for _ in range(500)]
    assert counter.count_many(texts) == counter._encode(texts)


def test_tokenizer_that_keeps_capitals_is_not_counted_in_lower_case():
    settings = json.loads(load_minilm_tokens()._tokenizer.to_str())
    settings["normalizer"]["lowercase"] = False
    counter = HuggingFaceTokens(Tokenizer.from_str(json.dumps(settings)), "cased")
    assert counter.count("Embeddings") == counter._encode(["Embeddings"])[0] != counter.count("embeddings")


@pytest.mark.parametrize("encoding", ["gpt2", "cl100k_base", "o200k_harmony"])
def test_missing_table_is_not_downloaded(no_tables, encoding):
    with pytest.raises(TokenizerUnavailableError, match=rf"{encoding}.*TIKTOKEN_CACHE_DIR.*WordPiece that ships"):
        TiktokenTokens(encoding)


def test_wrong_table_is_not_downloaded_again(no_tables):
    """tiktoken would delete a cached table with a wrong digest and download it."""
    with pytest.raises(TokenizerUnavailableError) as refused:
        TiktokenTokens("cl100k_base")
    key = str(refused.value).split("(file ")[1].split(")")[0]
    (no_tables / key).write_bytes(b"dG9rZW4= 0\n")
    with pytest.raises(TokenizerUnavailableError, match=key):
        TiktokenTokens("cl100k_base")
    assert (no_tables / key).exists()


def test_empty_cache_setting_counts_as_missing_table(no_tables, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert get_cache_folder() is None
    with pytest.raises(TokenizerUnavailableError, match="is empty"):
        TiktokenTokens("gpt2")


def test_download_needs_allow_download(no_tables, monkeypatch):

    def offline(*args, **kwargs):
        raise OSError("no route")

    monkeypatch.setattr("tiktoken.load.read_file", offline)
    with pytest.raises(TokenizerUnavailableError, match="no route"):
        TiktokenTokens("cl100k_base", allow_download=True)


def test_unknown_encoding_error_lists_encodings():
    with pytest.raises(TokenizerUnavailableError, match=r"'klingon'.*cl100k_base"):
        TiktokenTokens("klingon")


@pytest.mark.shared
def test_special_tokens_count_as_plain_text(tables):
    assert TiktokenTokens("gpt2").count("<|endoftext|>") > 1


@pytest.mark.parametrize("bad", [-1, 1.5, None, True, "3"])
def test_function_returning_no_count_raises(bad):
    with pytest.raises(TokenizerUnavailableError, match="mine"):
        FunctionTokens(lambda text: bad, "mine").count("a")


def test_settings_resolve_to_counters(tmp_path):
    assert resolve_tokens(None).name == "all-MiniLM-L6-v2 (WordPiece)" == resolve_tokens(resolve_tokens(None).name).name
    counter = FunctionTokens(len, "letters")
    assert resolve_tokens(counter) is counter
    assert resolve_tokens(len).count("abc") == 3
    padded_and_cut().save(str(tmp_path / "tokenizer.json"))
    for spec in (tmp_path, tmp_path / "tokenizer.json", str(tmp_path / "tokenizer.json")):
        assert resolve_tokens(spec).count("moon light") == 2
        assert resolve_tokens(spec).name == tmp_path.name
    with pytest.raises(ConfigurationError, match="42"):
        resolve_tokens(42)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "encoding"), [("gpt2", "gpt2"), ("o200k_base", "o200k_base"), ("gpt-4o", "o200k_base")]
)
def test_encoding_and_model_names_resolve_to_tiktoken(tables, name, encoding):
    assert resolve_tokens(name).name == encoding


def test_invalid_tokenizer_file_error_names_it(tmp_path):
    (tmp_path / "other.json").write_text(json.dumps({"a": 1}))
    for file in ("other.json", "nowhere.json"):
        with pytest.raises(TokenizerUnavailableError, match=file):
            resolve_tokens(str(tmp_path / file))


def test_unknown_model_error_names_it(monkeypatch):

    class Offline:
        @staticmethod
        def from_pretrained(name):
            raise OSError("offline")

    monkeypatch.setattr("tokenizers.Tokenizer", Offline)
    with pytest.raises(TokenizerUnavailableError, match=r"nobody/nothing.*WordPiece that ships"):
        resolve_tokens("nobody/nothing")
