"""Checks a query before models load or embed it."""

from meve.errors import QueryError, show


def check_query(text: object) -> None:
    """Check that a query is text.

    Raises:
        QueryError: another type, a blank query, or one that isn't valid Unicode.
    """
    if not isinstance(text, str):
        raise QueryError(f"query must be a string, got {type(text).__name__}: {show(text, 80)}")
    if not text.strip():
        raise QueryError(f"query must not be blank, got {text!r:.40}")
    try:
        text.encode()
    except UnicodeEncodeError as cause:
        raise QueryError(f"query must be valid Unicode text, got {text!r:.80}") from cause
