"""Test that Python examples of README and docs can be pasted into an interactive session.

pytest runs the pages themselves as well.
"""

import codeop
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def first_refused_line(block):
    """Return the first line that an interactive session refuses; None if it accepts all."""
    compiled, typed = codeop.CommandCompiler(), []
    for line in [*block.splitlines(), ""]:
        typed.append(line)
        try:
            code = compiled("\n".join(typed), symbol="single")
        except SyntaxError:
            return line
        if code:
            typed = []
    return next(filter(None, typed), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_can_be_pasted_into_a_session(page):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    blocks = [block for block in blocks if not block.startswith("import pytest")]
    assert [line for block in blocks if (line := first_refused_line(block)) is not None] == []


@pytest.mark.parametrize(
    ("block", "line"),
    [
        ("with a:\n    b = 1\n\nc = 2", None),
        ("@a\ndef b():\n    return 1\n\n\nc = (\n    1,\n\n    2,\n)", None),
        ("with a:\n    b = 1\n\n    c = 2", "    c = 2"),
        ("with a:\n    b = 1\nc = 2", "c = 2"),
        ("a = (\n    1,", "a = ("),
    ],
)
def test_refused_line_is_found(block, line):
    assert first_refused_line(block) == line
