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
    passages: str, factors: Mapping[str, float], needed: Sequence[str], condition: str, values: Sequence[Any]
) -> tuple[str, list[Any]]:
    """Return a statement for the ids and scores of passages that have one of the needed words, and its values.

    Args:
        passages: the table, with the column `norm` that BM25 adds to the frequency of a word.
        factors: the factor of each word in the score.
        needed: some of these words, at least one.
        condition: what else must hold, with `?` for each of the values.
        values: of the condition.
    """
    if len(factors) <= MOST_TERMS:
        terms = [value for word, factor in factors.items() for value in (quote(word), factor, word)]
        statement = f"SELECT id, {' + '.join([_TERM] * len(factors))} AS score FROM {passages} p WHERE {condition}"
        return f"{statement} AND words @@ ?::tsquery", [*terms, *values, " | ".join(map(quote, needed))]
    given: list[Any] = [list(factors), list(factors.values()), *values]
    if len(needed) < len(factors):
        parts = (needed[start : start + MOST_TERMS] for start in range(0, len(needed), MOST_TERMS))
        condition += " AND words @@ ANY(?::tsquery[])"
        given.append([" | ".join(map(quote, part)) for part in parts])
    return (
        f"SELECT id, sum(factor * {_SHARE.format('lexeme')}) AS score FROM {passages} p, unnest(words) "
        "JOIN unnest(?::text[], ?::float8[]) AS factors (word, factor) ON word = lexeme "
        f"WHERE {condition} GROUP BY id"
    ), given


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
