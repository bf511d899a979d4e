"""`meve ask`: prints the verified context for a question."""

import json
import math
import re
from contextlib import closing
from typing import Annotated, Any, get_args

import typer

from meve.cli._index_place import Collection, IndexPlace, load_index
from meve.cli._render import (
    explain_unverified,
    find_unverified,
    find_warnings,
    print_message,
    print_passages,
    print_text,
    print_trace,
    print_verdict,
    write_json,
)
from meve.errors import ConfigurationError
from meve.pipeline.config import Duplicates, Mode, Overrides, Packing, RetrieverConfig, Sources, WhenInsufficient
from meve.types import LexicalKind


def _one_of(kind: object) -> str:
    return "|".join(get_args(kind))


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    index: IndexPlace,
    collection: Collection = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show the five phases and the reason for each candidate.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Only passages with this metadata; may be repeated. A value is text; 3, true and null also match the "
            "number, boolean or null. Also KEY!=VALUE, and KEY<VALUE, <=, > and >=, which compare numbers or text. Put "
            "quotes around them in a shell.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    candidates: Annotated[int | None, typer.Option(help="Phase 1: maximum number of candidates per source.")] = None,
    spelling: Annotated[
        bool | None,
        typer.Option("--spelling/--no-spelling", help="Correct misspelt words of the question; by default, do."),
    ] = None,
    sources: Annotated[
        str | None, typer.Option(help="Phase 1: search by vectors, keywords or both.", metavar=_one_of(Sources))
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Phase 2: minimum probability of a verified passage.")] = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--no-exact",
            help="Phase 2: score all, or skip unlikely ones and duplicates; by default, skip unlikely ones.",
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(help="Phase 2: stop scoring after this many seconds; likeliest candidates first."),
    ] = None,
    hops: Annotated[
        int | None, typer.Option(help="Phase 2: number of searches; later ones add verified passages to the question.")
    ] = None,
    evidence: Annotated[int | None, typer.Option(help="Later searches: number of verified passages to add.")] = None,
    evidence_words: Annotated[int | None, typer.Option(help="Later searches: number of words of each.")] = None,
    follow_k: Annotated[int | None, typer.Option(help="Later searches: maximum number of candidates for each.")] = None,
    min_verified: Annotated[
        int | None, typer.Option(help="Phase 3: run the fallback below this number of verified passages.")
    ] = None,
    fallback_k: Annotated[int | None, typer.Option(help="Phase 3: maximum number of fallback passages.")] = None,
    fallback_floor: Annotated[
        float | None, typer.Option(help="Phase 3: minimum probability of a fallback passage.")
    ] = None,
    lexical: Annotated[
        str | None, typer.Option(help="Phases 1 and 3: keyword index.", metavar=_one_of(LexicalKind))
    ] = None,
    redundancy: Annotated[
        float | None, typer.Option(help="Phase 4: cosine above which a passage is similar to a better one.")
    ] = None,
    duplicates: Annotated[
        str | None,
        typer.Option(
            help="Phase 4: drop similar passages that only repeat the better one, or all similar ones.",
            metavar=_one_of(Duplicates),
        ),
    ] = None,
    diversify: Annotated[
        float | None, typer.Option(help="Phase 4: weight of being unlike the passages before, in the order.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Phase 5: maximum number of tokens of the context.")] = None,
    packing: Annotated[
        str | None,
        typer.Option(help="Phase 5: whole passages, or only their relevant sentences.", metavar=_one_of(Packing)),
    ] = None,
    sentence_threshold: Annotated[
        float | None, typer.Option(help="Phase 5: minimum probability of a sentence.")
    ] = None,
    sufficiency_threshold: Annotated[
        float | None, typer.Option(help="Minimum estimate of a sufficient context.")
    ] = None,
    when_insufficient: Annotated[
        str | None,
        typer.Option(help="What to do with a context that isn't sufficient.", metavar=_one_of(WhenInsufficient)),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Phase 5: maximum number of passages.")] = None,
    fill: Annotated[
        bool | None,
        typer.Option(
            "--fill/--no-fill", help="Phase 5: fill the budget of an uncertain context with unverified passages."
        ),
    ] = None,
    fill_below: Annotated[
        float | None, typer.Option(help="Phase 5: estimate of sufficiency below which a context is uncertain.")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="Phase 5: text between passages; \\n is a new line.")] = None,
    citations: Annotated[
        bool | None, typer.Option("--citations/--no-citations", help="Phase 5: number the passages.")
    ] = None,
    tokens: Annotated[str | None, typer.Option(help="Phase 5: name of the tokenizer.")] = None,
    mode: Annotated[str | None, typer.Option(help="Phases to run.", metavar=_one_of(Mode))] = None,
) -> None:
    """Print the verified context for a question.

    Also prints its tokens, whether it is sufficient, and which of its passages are verified. The exit status is 0 in
    both cases, unless --when-insufficient is raise, which prints the reason and exits with 1; scripts can read
    "sufficient" from --json.
    Settings default to those saved with the index.
    """
    overrides = {
        name: value for name, value in locals().items() if name in Overrides.__annotations__ and value is not None
    }
    if separator is not None:
        overrides["separator"] = separator.replace("\\n", "\n").replace("\\t", "\t")
    from meve.pipeline.query_check import check_query

    check_query(question)  # before the models load
    RetrieverConfig.from_dict(overrides)
    conditions = parse_where(where or [])
    with closing(load_index(index, collection)) as retriever:
        context = retriever.retrieve(question, where=conditions, **overrides)
    for sentence in find_warnings(context):
        print_message("warning", sentence)
    if as_json:
        write_json(context.to_dict())
        return
    if context.text:
        if not context.sufficient:
            print_message("warning", explain_unverified(context))
        print_text(context.text, "dim", find_unverified(context))
    print_verdict(context)
    print_passages(context)
    if trace:
        print_trace(context)


_SIGN = re.compile("!=|<=|>=|=|<|>")
_BOUNDS = {"<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}


def parse_where(conditions: list[str]) -> dict[str, dict[str, Any]] | None:
    """Return a filter from texts `key=value`, `key!=value`, `key<value`, …; a key given twice accepts either value.

    A value is text; if it is also a JSON number, true, false or null, that value is accepted too. A bound that is a
    number is compared with numbers only.

    Raises:
        ConfigurationError: a text without a sign or a key, or two bounds of one kind for a key.

    >>> parse_where(["lang=en", "lang=de", "until=null", "year>=1999"])
    {'lang': {'$in': ['en', 'de']}, 'until': {'$in': ['null', None]}, 'year': {'$gte': 1999}}
    """
    wanted: dict[str, dict[str, Any]] = {}
    for condition in conditions:
        found = _SIGN.search(condition)
        key = condition[: found.start()].strip() if found else ""
        if found is None or not key or condition[found.end() :].startswith(("=", "<", ">")):
            raise ConfigurationError(f"--where must be KEY=VALUE, or with !=, <, <=, > or >=, got {condition!r}")
        operators, sign, value = wanted.setdefault(key, {}), found[0], condition[found.end() :]
        if operator := _BOUNDS.get(sign):
            if operator in operators:
                raise ConfigurationError(f"--where must give {key}{sign} once, got {condition!r} too")
            operators[operator] = _parse_bound(value.strip())
        else:
            operators.setdefault("$in" if sign == "=" else "$nin", []).extend(_parse_value(value))
    return wanted or None


def _parse_bound(value: str) -> str | float:
    *_, last = _parse_value(value)
    return value if last is None or isinstance(last, str | bool) else last


def _parse_value(value: str) -> list[Any]:
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return [value]
    plain = read is None or (isinstance(read, int | float) and math.isfinite(read))
    return [value, read] if plain else [value]
