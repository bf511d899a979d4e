"""Test that Python examples of README and docs can be pasted into an interactive session.

pytest runs the pages themselves as well.
"""

import ast
import codeop
import re
from pathlib import Path

import pytest
import yaml

from meve.memory import Policy
from recipes.site.build import read_navigation

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
TESTS_OF_PROMISES = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (DOCS / "security.md").read_text(encoding="utf-8"))


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


def test_every_promise_of_the_security_page_names_a_test():
    promises = re.findall(r"^- (.+(?:\n  .+)*)", (DOCS / "security.md").read_text(encoding="utf-8"), re.M)
    assert len(promises) > 40
    assert [promise for promise in promises if "::test_" not in promise] == []


@pytest.mark.parametrize(("file", "name"), TESTS_OF_PROMISES, ids=lambda part: part.rpartition("/")[2])
def test_test_of_a_promise_exists(file, name):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def policy_values(section, prefix=""):
    """Yield the name of each key of a policy with its value, without those of classes."""
    for key, value in section.items():
        if isinstance(value, dict) and key not in ("classes", "tags"):
            yield from policy_values(value, f"{prefix}{key}.")
        elif key != "classes":
            yield prefix + key, value


def test_policy_reference_names_every_key_with_its_default():
    page = (DOCS / "policy.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `?([^|`]+)`? \|", page, re.M))
    policy = yaml.safe_load(Policy().to_yaml())
    assert {key: yaml.safe_load(value) for key, value in rows.items()} == dict(policy_values(policy))
    assert set(re.findall(r"^\| `classes\.\*\.(\w+)` ", page, re.M)) == set(policy["classes"]["factual"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_policies_in_pages_are_valid(page):
    for block in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
        Policy.from_dict(yaml.safe_load(block))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_with_a_memory_say_how_long_it_lasts(page):
    text = page.read_text(encoding="utf-8")
    shows_memory = "GovernedMemory.open(" in text or "/v1/remember" in text or "`remember`" in text
    assert not shows_memory or re.search(r"policy\.md#expiry|^## .*\bexpiry", text, re.I | re.M)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_pages_have_no_conflict_of_a_merge(page):
    assert re.findall(r"^.*(?:<{7}|>{7}) \w.*$", page.read_text(encoding="utf-8"), re.M) == []


def test_site_has_every_page_in_its_navigation():
    named = list(read_navigation())
    pages = [page.relative_to(ROOT).as_posix() for page in DOCS.rglob("*.md")]
    notebooks = [f"notebooks/{file.stem}.md" for file in (ROOT / "notebooks").glob("*.ipynb")]
    assert sorted(name for name in named if name.startswith(("docs/", "notebooks/"))) == sorted(pages + notebooks)
