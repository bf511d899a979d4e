"""Foreign data of any shape is answered or refused with an error of meve; it never crashes and harms no other user.

`MEVE_FUZZ=2000` runs so many random cases of each kind, and writes the smallest case that fails into `corpus/`.
Rename it to what it shows, and commit it: every case of the corpus runs in each test run.
"""

import json
import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meve.memory import Policy
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
EXAMPLES = int(os.environ.get("MEVE_FUZZ", "0"))
TIME_LIMIT = 120 + EXAMPLES
CASES = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*.json"))

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["", "alice", "bob", "2026-05-01T00:00:00+00:00", "9999-12-31", "PT1H", "7d", "\x00", "\ud800", "-1"]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=8), each, max_size=4),
    max_leaves=8,
)
EDIT = st.tuples(
    st.integers(0, 20),
    st.floats(0, 1),
    st.sampled_from([0, 1, 2, 4, 8, 64]),
    st.binary(max_size=8).map(bytes.hex) | st.sampled_from(["ff" * 8, "00" * 8, "ffffffff", "7f" * 4]),
)


MANIFEST_FIELDS = ["passages", "next_row", "next_id", "embedder", "verifier", "tokens", "evidence", "dense", "lexical"]
MANIFEST_FIELDS += ["config", "files", "format"]
YAML = [
    "2026-13-45",
    "!!int x",
    "!!bool x",
    "!!timestamp x",
    "&a [*a]",
    "!!set {a}",
    "{? [a] : b}",
    ".nan",
    "0x",
    "<<: 1",
]


@cache
def policy_lines():
    """Lines of a whole policy, from which random ones are made."""
    return Policy().to_yaml().splitlines()


@st.composite
def policies(draw):
    lines = list(policy_lines())
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(0, len(lines) - 1))
        key = lines[n].split(":")[0]
        lines[n] = draw(st.sampled_from(["", "{key}: {value}", "  {key}: {value}", "{value}"])).format(
            key=key,
            value=draw(st.text(max_size=12) | st.integers().map(str) | VALUES.map(json.dumps) | st.sampled_from(YAML)),
        )
    return {"yaml": "\n".join(lines)}


STRATEGIES = {
    "index": st.fixed_dictionaries(
        {"kind": st.sampled_from(["flat", "hnsw", "ivf", "rabitq"]), "edits": st.lists(EDIT, max_size=4)},
        optional={
            "manifest": st.dictionaries(st.sampled_from(MANIFEST_FIELDS), VALUES, max_size=2),
            "passage": st.dictionaries(st.sampled_from(["row", "id", "title", "text", "tokens", "metadata"]), VALUES),
        },
    ),
    "policy": policies() | st.fixed_dictionaries({"yaml": st.text(max_size=60) | VALUES.map(json.dumps)}),
    "export": st.fixed_dictionaries(
        {"edits": st.lists(st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=6), VALUES), max_size=4)}
    )
    | st.fixed_dictionaries({"data": VALUES}),
    "messages": st.fixed_dictionaries(
        {"session": st.text(max_size=8), "values": st.lists(VALUES, max_size=4)},
        optional={"ids": st.none() | st.lists(st.none() | st.text(max_size=6), max_size=4)},
    ),
    "token": st.fixed_dictionaries({"token": VALUES | st.text(max_size=60)})
    | st.fixed_dictionaries(
        {"edits": st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 64]), st.text(max_size=4)), max_size=4)},
        optional={"header": st.dictionaries(st.sampled_from(["kid", "ver", "iat", "exp", "non"]), VALUES)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_case_of_the_corpus_is_answered_or_refused(case):
    TARGETS[case.partition("/")[0]](json.loads((CORPUS / case).read_text("utf-8")))


@pytest.mark.timeout(TIME_LIMIT)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.filterwarnings("default")
def test_random_data_is_answered_or_refused(target):
    running = CORPUS / target / "found-crash.json"

    @settings(
        max_examples=EXAMPLES or 25, deadline=None, derandomize=not EXAMPLES, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(STRATEGIES[target])
    def check(case):
        text = json.dumps(case, indent=1) + "\n"
        if EXAMPLES:
            running.write_text(text, encoding="utf-8")  # stays if the process crashes
        try:
            TARGETS[target](json.loads(text))
        except Exception as error:
            if EXAMPLES:
                running.rename(running.with_name(f"found-{type(error).__name__}.json"))
            raise

    check()
    running.unlink(missing_ok=True)
