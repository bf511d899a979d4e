"""Whatever reads foreign text takes time that grows no faster than the text."""

import ast
import importlib
import pkgutil
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from meve.components._repeated_text import RepeatedText
from meve.components._sentence_splitter import split_sentences
from meve.components.entities.patterns import PatternEntities
from meve.components.lexical.analyzers import search_words, stemmed_words, words
from meve.conversation import Turn
from meve.dialogue._turn_passages import split_turn
from meve.errors import IngestError
from meve.ingest import Chunker, Chunking, split_file
from meve.ingest._file_readers import decode
from meve.ingest._jsonl import read_jsonl_passages
from meve.ingest._slices import SLICE, iter_slices
from meve.memory._classify.fact_extraction import extract_statements, is_statement
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._classify.tags import PolicyTagger
from meve.memory._classify.wish_endings import read_ending
from meve.memory._contradiction.outline import write_outline
from meve.memory._contradiction.rules import RuleContradiction
from meve.memory._feedback.usage_judge import RuleUsageJudge
from meve.memory._recall.formatting import quote_texts
from meve.memory._recall.time_expressions import find_time
from meve.memory._write.personal_data import PersonalDataDetector
from meve.memory._write.secrets import PatternSecretDetector
from meve.memory.policy import PersonalDataRules, Tagging
from meve.routing._attribution import split_by_person
from meve.routing._follow_ups import join_follow_up
from meve.routing._grounding import _without_instructions, find_names, split_clauses
from meve.routing._rules import asks_for_history, find_intent
from meve.routing._topic import split_parts
from meve.routing._validator import find_hard_failure
from meve.testing.fakes import WordCounter, WordEmbedder
from meve.types import Candidate, Passage
from tests.linear_time import MOST, PATTERNS, PIECES, TIMES, find_growth, pattern_pieces

PACKAGES = ("meve", "langchain_meve", "llama_index_meve")


@cache
def modules() -> tuple[ModuleType, ...]:
    found = []
    for package in map(importlib.import_module, PACKAGES):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not each.name.endswith("__main__"):
                found.append(importlib.import_module(each.name))
    return tuple(found)


def _patterns_in(value: object, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | set | frozenset | dict) and depth < 4 and len(value) < 1_000:
        for each in value.items() if isinstance(value, dict) else value:
            yield from _patterns_in(each, depth + 1)


def _inline_patterns(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the method and pattern of each call such as `re.sub("a+", …)`."""
    source = Path(module.__file__).read_text()
    for node in ast.walk(ast.parse(source)) if re.search(r"\bre\.(?!compile)\w+\(", source) else ():
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if not is_call or getattr(node.func.value, "id", "") != "re" or node.func.attr == "compile":
            continue
        if isinstance(node.args[0], ast.Constant):
            yield node.func.attr, node.args[0].value


@cache
def methods() -> dict[str, set[str]]:
    """Return the methods that are called on each name in the packages."""
    used: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        for name, method in re.findall(
            r"\b(\w+)\.(match|fullmatch|search|sub|findall|finditer|split)\(", Path(module.__file__).read_text()
        ):
            used[name].add(method)
    return used


@cache
def find_patterns() -> dict[str, tuple[re.Pattern[str], str]]:
    """Return each compiled pattern of the packages, and how it is used: `match`, `fullmatch`, or anywhere in a text."""
    patterns: dict[str, tuple[re.Pattern[str], str]] = {}
    for module in modules():
        for name, value in vars(module).items():
            for pattern in _patterns_in(value):
                uses = methods()[name]
                method = next(iter(uses)) if len(uses) == 1 and uses <= {"match", "fullmatch"} else "search"
                patterns.setdefault(f"{pattern.pattern[:200]} {pattern.flags}", (pattern, method))
        for method, text in _inline_patterns(module):
            pattern = re.compile(text)
            patterns.setdefault(f"{text[:200]} {pattern.flags}", (pattern, method))
    return patterns


def read_with(pattern: re.Pattern[str], method: str):
    if method in ("match", "fullmatch"):
        return getattr(pattern, method)
    return lambda text: sum(1 for _ in pattern.finditer(text))


@pytest.mark.parametrize("pattern", [r"\s+\n", r"(?:no\d)+x", r"\d+-\d+-x", r"(?:my|[A-Z])+!"])
def test_slow_pattern_is_noticed(pattern):
    assert find_growth(read_with(re.compile(pattern), "search"), pattern_pieces(pattern), ["`_"], **PATTERNS)


def test_all_patterns_are_found():
    names = {pattern.pattern for pattern, _ in find_patterns().values()}
    assert len(names) > 70
    assert {r"\w+", r"\s"} <= names  # of a call of `re` within a function


@pytest.mark.parametrize("name", find_patterns())
def test_pattern_takes_linear_time(name):
    pattern, method = find_patterns()[name]
    read = read_with(pattern, method)
    assert find_growth(read, (("", piece) for piece in PIECES), **PATTERNS) == []
    assert find_growth(read, pattern_pieces(pattern.pattern, pattern.flags), ["`_"], **PATTERNS) == []


def split(kind: str):
    chunker = Chunker(Chunking(tokens=64), WordCounter().count)

    def read(text: str) -> object:
        try:
            return split_file(text, f"file.{kind}", chunker)
        except IngestError:  # HTML that is nested too deeply
            return None

    return read


def judge(text: str) -> object:
    """Judge a long answer to a long question."""
    vectors = WordEmbedder().embed_passages(["I eat no meat."])
    rule = RuleUsageJudge(embedder=WordEmbedder(), contradiction=RuleContradiction())
    return rule.judge(text, text, ["I eat no meat."], vectors)


def tag(text: str) -> object:
    return PolicyTagger(Tagging(tags={"food": "meals, drinks"}), WordEmbedder()).tag(text)


def find_phone(text: str) -> str:
    pytest.importorskip("phonenumbers", reason="NOT TESTED: finding phone numbers needs the extra personal-data")
    return PersonalDataDetector(PersonalDataRules(regions=["DE"])).find(text)


READERS = {
    "personal_data": find_phone,
    "words": words,
    "stemmed_words": stemmed_words,
    "search_words": search_words,
    "split_sentences": split_sentences,
    "entities": lambda text: PatternEntities(["red wine"]).detect([text]),
    "repeated_text": lambda text: RepeatedText()(Passage(id="a", text=text), Passage(id="b", text=text + " b")),
    "turn": lambda text: split_turn(Turn(speaker=text, text=text), 0),
    "statements": extract_statements,
    "is_statement": is_statement,
    "is_standing_wish": is_standing_wish,
    "ends": lambda text: read_ending(text, "Always keep your answers short."),
    "ended": lambda text: read_ending("You can write long answers now.", text),
    "tags": tag,
    "contradiction": lambda text: RuleContradiction().find_difference(text, f"{text} not"),
    "usage": judge,
    "find_time": lambda text: find_time(text, datetime(2026, 5, 20, tzinfo=UTC)),
    "find_intent": find_intent,
    "asks_for_history": asks_for_history,
    "split_parts": split_parts,
    "find_hard_failure": find_hard_failure,
    "find_names": find_names,
    "split_clauses": split_clauses,
    "join_follow_up": lambda text: join_follow_up(["Where?", text]),
    "without_instructions": lambda text: _without_instructions(text, is_own=True),
    "split_by_person": lambda text: split_by_person(
        Candidate(passage=Passage(id="1", text=f"Ana: {text}"), origin="x"), "Ana"
    ),
    "quote_texts": lambda text: quote_texts([text]),
    "markdown": split("md"),
    "html": split("html"),
    "rst": split("rst"),
    "text": split("txt"),
    "text_sections": lambda text: split("txt")(f"1. CELLAR\n\nIt is full.\n\n{text}\n\n2. GARDEN\n\nIt is dry."),
    "csv": lambda text: split("csv")(f"a,b,c\n1,2,3\n4,5,6\n{text}"),
    "mail": split("eml"),
    "mail_body": lambda text: split("eml")(f"Subject: a\n\n{text}"),
    "mail_page": lambda text: split("eml")(f"Content-Type: text/html\n\n{text}"),
    "mail_from": lambda text: split("eml")(f"From: {text}"),
    "mail_type": lambda text: split("eml")(f"Content-Type: text/plain; {text}"),
    "decode": lambda text: decode(text.replace("\x00", "").encode()),
}


@pytest.mark.parametrize("name", READERS)
def test_reading_foreign_text_takes_linear_time(name):
    assert find_growth(READERS[name], (("", piece) for piece in PIECES), ["`_"]) == []


def test_jsonl_takes_linear_time():
    def read(text: str) -> object:
        return read_jsonl_passages(text, "rows.jsonl")

    pieces = ['{"text": "a"}\n', "{\n", '{"text": "', "[", '{"a":', "\n", "x", '{"text": "a", "id": "b"}\n']
    assert find_growth(read, (("", piece) for piece in pieces)) == []


def test_code_is_parsed_in_slices():
    """The parser takes quadratic time for this text, so it gets no more than a slice at once."""
    chunker = Chunker(Chunking(), lambda text: len(text) // 4)
    began = time.process_time()
    chunker.split("a." * SLICE, "code", "file.py")
    first = time.process_time() - began
    chunker.split("a." * SLICE * TIMES, "code", "file.py")
    assert time.process_time() - began - first < MOST * first


def test_slices_end_before_outer_lines():
    text = "".join(f"def f{n}():\n    a = {n}\n\n    return a\n\n" for n in range(100))
    slices = list(iter_slices(text, 500))
    assert "".join(part for _, part in slices) == text
    assert all(text[start:].startswith(part) and part.startswith("def") and len(part) <= 500 for start, part in slices)
    assert [part for _, part in iter_slices("x" * 25, 10)] == ["x" * 10, "x" * 10, "x" * 5]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (extract_statements, "? " * 20_000),
        (is_statement, "? " * 20_000 + "x"),
        (write_outline, "A-" * 20_000),
        (write_outline, "hundred " * 20_000),
        (PatternEntities().detect, ["The " * 20_000]),
        (decode, b"<!-- lint disable -->\n" * 20_000),
    ],
)
def test_long_runs_are_read_within_seconds(read, text):
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("read", "pieces"),
    [
        (split_sentences, ["``", "`", "\u201c", "(", "[", "a. `", "a\n"]),
        (
            extract_statements,
            [
                "a:\n",
                "Hi Tom,\n",
                "Hi Tom, ",
                "Regards\n",
                "Love, Tom. ",
                "a.\n\nTranslate this?\n",
                "Does this mean? ",
                "Subject: a\n",
                "a: b\nc: b\n",
                "[1:00] a: b\n",
                "```\n",
                "Dear Ms A,\n\n",
            ],
        ),
        (PatternSecretDetector().find_secret, ["passport-", "passport ", "ssn", "tax id-1"]),
        (PatternSecretDetector().find_secret, ["secret", "api_key", "password_", "secret.", "x=secret "]),
        (PatternSecretDetector().find_secret, ["eyJ", "eyJhbGciOiJI.", "-eyJhbGciOiJI"]),
    ],
)
def test_long_runs_take_linear_time(read, pieces):
    assert find_growth(read, [("", piece) for piece in pieces], [""], small=8_000) == []
