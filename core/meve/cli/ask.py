"""`meve ask`: the verified context for a question."""

import json
import math
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from meve.cli._render import complain, show_text, show_trace, show_verdict, unverified, write_json
from meve.errors import ConfigurationError
from meve.pipeline.config import Mode, Packing, Sources
from meve.types import LexicalKind

DECISIONS = "How to decide (as saved with the index, unless given)"


def _one_of(kind: object) -> str:
    return "|".join(get_args(kind))


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    index: Annotated[Path, typer.Option("--index", help="The index's folder.", metavar="DIR")],
    trace: Annotated[bool, typer.Option("--trace", help="Show the five phases and every candidate's fate.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Only passages with this metadata; may be repeated. The value is text; 3, true or null also matches "
            "the number, truth value or null.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    candidates: Annotated[int | None, typer.Option(help="Phase 1: how many candidates.")] = None,
    sources: Annotated[
        str | None, typer.Option(help="Phase 1: where candidates come from.", metavar=_one_of(Sources))
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Phase 2: least probability of a verified one.")] = None,
    exact: Annotated[
        bool | None, typer.Option("--exact/--quick", help="Phase 2: quick skips what can't matter.")
    ] = None,
    hops: Annotated[int | None, typer.Option(help="Phase 2: 2 to ask again beside what is verified.")] = None,
    evidence: Annotated[int | None, typer.Option(help="Phase 2: how many passages a further hop goes on from.")] = None,
    evidence_words: Annotated[int | None, typer.Option(help="Phase 2: how many words of each it reads.")] = None,
    follow_k: Annotated[int | None, typer.Option(help="Phase 2: how many a source may bring for each.")] = None,
    min_verified: Annotated[int | None, typer.Option(help="Phase 3: runs with fewer verified ones.")] = None,
    fallback_k: Annotated[int | None, typer.Option(help="Phase 3: how many it may bring.")] = None,
    fallback_floor: Annotated[float | None, typer.Option(help="Phase 3: least probability of those.")] = None,
    lexical: Annotated[
        str | None, typer.Option(help="Phase 3: which keyword index.", metavar=_one_of(LexicalKind))
    ] = None,
    redundancy: Annotated[float | None, typer.Option(help="Phase 4: largest cosine with a better one.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Phase 5: most tokens of the context.")] = None,
    packing: Annotated[str | None, typer.Option(help="Phase 5: what is packed.", metavar=_one_of(Packing))] = None,
    sentence_threshold: Annotated[
        float | None, typer.Option(help="Phase 5: least probability of a sentence that is packed.")
    ] = None,
    sufficiency_threshold: Annotated[
        float | None, typer.Option(help="Least estimate of a sufficient context, where an estimator is at hand.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Phase 5: most passages.")] = None,
    separator: Annotated[str | None, typer.Option(help="Phase 5: stands between passages; \\n is a new line.")] = None,
    citations: Annotated[
        bool | None, typer.Option("--citations/--no-citations", help="Phase 5: number the passages.")
    ] = None,
    tokens: Annotated[str | None, typer.Option(help="Phase 5: count with this tokenizer.")] = None,
    mode: Annotated[str | None, typer.Option(help="Leave phases out.", metavar=_one_of(Mode))] = None,
) -> None:
    """Print the verified context for a question.

    With it, its tokens, and whether it is sufficient. The exit status is 0 also when it isn't: that is an answer too.
    Scripts read "sufficient" from --json.
    """
    given: dict[str, Any] = {
        "candidates": candidates,
        "sources": sources,
        "threshold": threshold,
        "exact": exact,
        "hops": hops,
        "evidence": evidence,
        "evidence_words": evidence_words,
        "follow_k": follow_k,
        "min_verified": min_verified,
        "fallback_k": fallback_k,
        "fallback_floor": fallback_floor,
        "lexical": lexical,
        "redundancy": redundancy,
        "max_tokens": max_tokens,
        "packing": packing,
        "sentence_threshold": sentence_threshold,
        "sufficiency_threshold": sufficiency_threshold,
        "limit": limit,
        "separator": separator if separator is None else separator.replace("\\n", "\n").replace("\\t", "\t"),
        "citations": citations,
        "tokens": tokens,
        "mode": mode,
    }
    from meve.pipeline.config import RetrieverConfig
    from meve.pipeline.pipeline import check_query
    from meve.retrieval.retriever import Retriever

    overrides = {name: value for name, value in given.items() if value is not None}
    check_query(question)  # before the models load
    RetrieverConfig.from_dict(overrides)
    conditions = parse_where(where or [])
    context = Retriever.load(index).retrieve(question, where=conditions, **overrides)
    if as_json:
        write_json(context.to_dict())
        return
    if context.text and not context.sufficient:
        complain("warning", unverified(context))
        show_text(context.text, "dim")
    elif context.text:
        show_text(context.text)
    show_verdict(context)
    if trace:
        show_trace(context)


def parse_where(conditions: list[str]) -> dict[str, list[Any]] | None:
    """From `key=value` to accepted values by key. A key given twice accepts either.

    A value is text; where it reads as a JSON number, true, false or null, that is accepted as well.

    Raises:
        ConfigurationError: no `=`, or no key.

    >>> parse_where(["lang=en", "lang=de", "year=1999", "until=null"])
    {'lang': ['en', 'de'], 'year': ['1999', 1999], 'until': ['null', None]}
    """
    accepted: dict[str, list[Any]] = {}
    for condition in conditions:
        key, equals, value = condition.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"--where is {condition!r}: give KEY=VALUE")
        accepted.setdefault(key.strip(), []).extend(_readings(value))
    return accepted or None


def _readings(value: str) -> list[Any]:
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return [value]
    plain = read is None or (isinstance(read, int | float) and math.isfinite(read))
    return [value, read] if plain else [value]
