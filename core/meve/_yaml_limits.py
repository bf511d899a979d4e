"""Limits of YAML data from outside: its size, its nesting, and what its aliases stand for, checked while it is read."""

import re
from pathlib import Path
from typing import Any

import yaml

from meve._json_limits import NESTING, is_nested_deeper

MAX_BYTES = 1_000_000
"""The most bytes of a file."""
MAX_VALUES = 10_000
"""The most values of a file."""
_BOOLEAN = "tag:yaml.org,2002:bool"
_PROBLEM = (
    f"it must hold at most {MAX_BYTES:,} bytes and {MAX_VALUES:,} values, nested at most {NESTING} deep; an alias "
    "counts as all that it stands for"
)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Reads plain values; stops as soon as there are too many, or they are nested too deeply.

    Booleans are those of YAML 1.2, `true` and `false`: `NO` is a text, such as the code of Norway.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the base class
        first: [each for each in resolvers if each[0] != _BOOLEAN]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _depth = _values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        self._count(1, self._depth > NESTING + 1)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        self._count(len(node.value))  # with what was merged into it

    def _count(self, values: int, is_too_deep: bool = False) -> None:
        self._values += values
        if is_too_deep or self._values > 2 * MAX_VALUES:  # keys count here, too
            raise ValueError(_PROBLEM)


_Loader.add_implicit_resolver(_BOOLEAN, re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def read_yaml(file: Path) -> Any:  # noqa: ANN401 - YAML has any type
    """Return the data of a YAML file.

    Raises:
        OSError: the file can't be read.
        ValueError: it is no YAML, or too large.
    """
    with file.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    return parse_yaml(content)


def parse_yaml(content: bytes) -> Any:  # noqa: ANN401 - YAML has any type
    """Return the data of a YAML text in UTF-8.

    Raises:
        ValueError: it is no YAML, or too large.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(_PROBLEM)
    try:
        data = yaml.load(content.decode(), _Loader)
    # a tag with a wrong value, such as `!!bool x`, raises errors of Python
    except (yaml.YAMLError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError) as cause:
        raise ValueError(str(cause)) from cause
    if is_nested_deeper(data, NESTING, MAX_VALUES):
        raise ValueError(_PROBLEM)
    return data
