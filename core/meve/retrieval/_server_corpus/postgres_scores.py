"""Build the statement that scores passages in PostgreSQL by BM25."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

FIRST_READ = 2_000
"""So many passages with the rarest words are scored first."""
MOST_TERMS = 64
"""The most words that are scored as a sum of terms, whose depth PostgreSQL limits; also the most of one `tsquery`."""

_SHARE = "(1 - norm / (coalesce((repeated ->> {})::float8, 1) + norm))"
"""The share tf / (tf + norm) of BM25, as 1 - norm / (tf + norm); most words occur once."""
_TERM = f"CASE WHEN words @@ ?::tsquery THEN ?::float8 * {_SHARE.format('?::text')} ELSE 0 END"


def make_scores(
    passages: str, factors: Mapping[str, float], matching: Sequence[str], condition: str, values: Sequence[Any]
) -> tuple[str, list[Any]]:
    """Return a statement for the ids and scores of passages that have one of the words, and its values.

    Args:
        passages: the table, with the column `norm` that BM25 adds to the frequency of a word.
        factors: the factor of each word in the score.
        matching: each a `tsquery`, one of which must match too; all passages with a word if there is none.
        condition: what else must hold, with `?` for each of the values.
        values: of the condition.
    """
    if len(factors) <= MOST_TERMS:
        terms = [value for word, factor in factors.items() for value in (quote(word), factor, word)]
        statement = f"SELECT id, {' + '.join([_TERM] * len(factors))} AS score FROM {passages} p WHERE {condition}"
        return f"{statement} AND words @@ ?::tsquery", [*terms, *values, *(matching or match_any(list(factors)))]
    given: list[Any] = [list(factors), list(factors.values()), *values]
    if matching:
        condition += " AND words @@ ANY(?::tsquery[])"
        given.append(list(matching))
    return (
        f"SELECT id, sum(factor * {_SHARE.format('lexeme')}) AS score FROM {passages} p, unnest(words) "
        "JOIN unnest(?::text[], ?::float8[]) AS factors (word, factor) ON word = lexeme "
        f"WHERE {condition} GROUP BY id"
    ), given


def match_any(words: Sequence[str]) -> list[str]:
    """Return a `tsquery` for each 64 words, which matches what has one of them."""
    return [" | ".join(map(quote, words[start : start + MOST_TERMS])) for start in range(0, len(words), MOST_TERMS)]


def match_reaching(least: float, factors: Mapping[str, float]) -> str | None:
    """Return a `tsquery` that every text matches whose words' factors together reach a sum.

    Of many words, combinations of the first are told apart, as if each text had all others.

    Args:
        least: the sum.
        factors: words with their factors, the largest first.

    Returns:
        None if nothing is known that such a text must have.
    """
    found, ranked = None, list(factors.items())
    for count in range(1, len(ranked) + 1):
        others = sum(factor for _, factor in ranked[count:])
        if others >= least:
            continue
        query = _reach(least - others, ranked[:count])
        if query.count("'") > 2 * MOST_TERMS:
            break
        found = query
    return found


def _reach(least: float, factors: Sequence[tuple[str, float]]) -> str:
    """Return a `tsquery` for what reaches a sum, which is above 0; empty if nothing can."""
    if sum(factor for _, factor in factors) < least:
        return ""
    (word, factor), *rest = factors
    with_it, without = quote(word), _reach(least, rest)
    if factor < least:
        with_it += f" & ({_reach(least - factor, rest)})"
    return f"{with_it} | {without}" if without else with_it


def count_next(ranked: Sequence[str], texts: Mapping[str, int], read: int, passages: int) -> int:
    """Return how many of the ranked words to read next: at least one more, and all that few texts have.

    Args:
        ranked: the words, the rarest first.
        texts: how many texts have each word.
        read: how many of the words have been read.
        passages: how many texts there are. Of many words, all are read once as many texts are wanted.
    """
    sums = list(accumulate(texts[word] for word in ranked))
    before = sums[read - 1] if read else 0
    wanted = max(FIRST_READ, 2 * before)
    if len(ranked) > MOST_TERMS and wanted >= passages:
        return len(ranked)
    return max(read + 1, bisect_right(sums, wanted))


def quote(word: str) -> str:
    """Return a word as a lexeme of a `tsquery`."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
