"""The page of licences names each dependency, with what the installed package states."""

import re
from itertools import chain

import pytest

from tests.licences import PAGE, direct, read_licence

ROW = re.compile(r"^\| (\S+) \| (.+?) \| (.+) \|$", re.M)
ROWS = {name: (version, licence) for name, version, licence in ROW.findall(PAGE.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("name", [*chain(*direct())])
def test_licence_is_that_of_the_installed_package(name):
    assert name in ROWS, "run make licences"
    found = read_licence(name)
    if found is None:
        pytest.skip(f"NOT TESTED: {name} isn't installed")
    if found[0] != ROWS[name][0]:
        pytest.skip(f"NOT TESTED: the page is of {name} {ROWS[name][0]}")
    assert found == ROWS[name]
    assert re.search("MIT|Apache|BSD|LGPL", found[1])
