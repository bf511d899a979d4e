"""Tell a question that holds a pasted text, such as a stack trace or a letter."""

FEWEST_LINES = 4
"""The fewest lines of a pasted text."""
MOST_CHARS = 1_000
"""The most characters of a question that holds none."""


def holds_pasted_text(question: str) -> bool:
    r"""Return whether a question has at least four lines with text, or more than 1,000 characters.

    >>> holds_pasted_text("How do I stop it?"), holds_pasted_text("main()\nrun()\nload()\nHow do I stop it?")
    (False, True)
    """
    return len(question) > MOST_CHARS or sum(map(bool, map(str.strip, question.splitlines()))) >= FEWEST_LINES
