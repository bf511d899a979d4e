"""What reads foreign data, each as a function of one JSON value: it must answer, or raise an error of meve."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from meve import MeveError, Retriever
from meve.conversation import SlicePolicy
from meve.errors import AdmissibilityError, PolicyError
from meve.memory import Policy
from meve.retrieval._snapshot import MANIFEST, _digest
from meve.service.kernel.records import write_canonical
from meve.service.kernel.tokens import Header, Statement, parse_token, sign_statement, verify_statement
from meve.signing_keys import encode
from meve.testing.fakes import FakeClock
from tests.fake_components import make_components
from tests.memories import open_memory
from tests.service.kernels import KEY

TEXTS = ["The sky is blue.", "Grass is green.", "Deep water looks blue as well.", "Bread is baked."] * 16
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@contextmanager
def _folder():
    with tempfile.TemporaryDirectory(prefix="meve-fuzz-") as name:
        yield Path(name)


@cache
def saved_index(kind):
    """Save an index once a process, and return its folder."""
    folder = Path(tempfile.mkdtemp(prefix="meve-fuzz-index-"))
    Retriever.from_texts(TEXTS, dense=kind, **make_components()).save(folder / "index")
    return folder / "index"


def read_index(case):
    """Load an index whose files were edited by somebody who also mended the checksums, and ask it.

    The case holds `kind`, and `edits`: each a file's number, a place as a share of its length, how many bytes go there,
    and the bytes that come as hex. `passage` and `manifest` replace fields of the first passage and of the manifest.
    """
    with _folder() as folder:
        index = folder / "index"
        shutil.copytree(saved_index(case["kind"]), index)
        manifest = json.loads((index / MANIFEST).read_text("utf-8"))
        files = sorted(manifest["files"])
        if "passage" in case:
            file = index / manifest["generation"] / "passages.jsonl"
            first, *others = file.read_text("utf-8").splitlines(keepends=True)
            file.write_text(json.dumps(json.loads(first) | case["passage"]) + "\n" + "".join(others), encoding="utf-8")
            manifest["files"][file.name] = {"bytes": file.stat().st_size, "sha256": _digest(file)}
        for number, place, removed, added in case["edits"]:
            file = index / manifest["generation"] / files[number % len(files)]
            content = file.read_bytes()
            at = int(place * len(content))
            file.write_bytes(content[:at] + bytes.fromhex(added) + content[at + removed :])
            manifest["files"][file.name] = {"bytes": file.stat().st_size, "sha256": _digest(file)}
        manifest |= case.get("manifest", {})
        (index / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        try:
            retriever = Retriever.load(index, **make_components())
            retriever.retrieve("blue sky")
            retriever.add(["A new text."])
        except MeveError:
            return


def read_policy(case):
    """Read a policy from YAML text; what is accepted is written and read again unchanged."""
    with _folder() as folder:
        file = folder / "policy.yaml"
        file.write_text(case["yaml"], encoding="utf-8", errors="surrogatepass")
        try:
            policy = Policy.from_yaml(file)
        except PolicyError:
            return
        file.write_text(policy.to_yaml(), encoding="utf-8")
        assert Policy.from_yaml(file) == policy


@cache
def _export():
    with _folder() as folder, open_memory(folder / "memory.db", clock=FakeClock(NOW)) as memory:
        memory.add("I live in Oslo.", user_id="alice", id="home", tags=["place"], metadata={"n": [1, {"a": None}]})
        memory.supersede("home", "I live in Rome.", user_id="alice")
        memory.messages.add("monday", [{"role": "user", "content": "Hello."}] * 2, user_id="alice")
        memory.items.put(("alice", "food"), "tea", {"text": "green tea"}, user_id="alice")
        return json.loads(json.dumps(memory.export(user_id="alice")))


def edit(data, path, value):
    """Set the value at a path of numbers, each taken modulo the number of keys or items there."""
    for step in path[:-1]:
        keys = sorted(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
        if not keys or not isinstance(data[keys[step % len(keys)]], dict | list):
            break
        data = data[keys[step % len(keys)]]
    if isinstance(data, dict) and data:
        data[sorted(data)[path[-1] % len(data)]] = value
    elif isinstance(data, list):
        data.insert(path[-1] % (len(data) + 1), value)


def read_export(case):
    """Import an altered export of alice beside a record of bob, who keeps what he has."""
    data = case["data"] if "data" in case else deepcopy(_export())
    for path, value in case.get("edits", ()):
        edit(data, path, value)
    with _folder() as folder, open_memory(folder / "memory.db", clock=FakeClock(NOW)) as memory:
        memory.add("I am bob.", user_id="bob", id="b")
        before = memory.export(user_id="bob")
        try:
            report = memory.import_(data, user_id="alice")
        except MeveError:
            assert memory.list(user_id="alice") == []
        else:
            assert all(isinstance(number, int) and reason for number, reason in report.rejected)
        assert memory.audit.verify().ok
        again = json.loads(json.dumps(memory.export(user_id="alice")))
        memory.search("Where do I live?", user_id="alice")
        memory.maintain()
        now = memory.export(user_id="bob")
        assert [each["text"] for each in now["records"]] == [each["text"] for each in before["records"]]
        memory.forget_user(user_id="alice")
        assert not [row for row in memory.list(user_id="alice") if not row.hold]
        memory.import_(again, user_id="alice", restore_erased=True)


def read_messages(case):
    """Add messages of any shape: all are returned as given, or an error is raised and none is kept."""
    with _folder() as folder, open_memory(folder / "memory.db", clock=FakeClock(NOW)) as memory:
        try:
            memory.messages.add(case["session"], case["values"], user_id="alice", ids=case.get("ids"))
        except MeveError:
            assert memory.messages.sessions(user_id="alice") == []
            return
        kept = [message.value for message in memory.messages.page(case["session"], user_id="alice")]
        unique = len(set(case["ids"])) == len(case["ids"]) if case.get("ids") else True
        assert not unique or kept == case["values"]
        assert memory.audit.verify().ok
        memory.maintain()
        memory.forget_session(case["session"], user_id="alice")
        assert memory.messages.page(case["session"], user_id="alice") == []


@cache
def signed_token():
    """Return a statement of the kernel, and its token."""
    statement = Statement(
        tenant="t", conversation="c", anchor="a", policy=SlicePolicy.paper(), turns=[("a", "0" * 64, 1.0)], closed=()
    )
    header = Header(key="k1", version="0" * 64, issued=1_800_000_000, expires=1_800_000_060)
    return statement, header, sign_statement(statement, header, KEY)


def read_token(case):
    """Read a token of the kernel: no text but the one that was signed is accepted, and each has one spelling.

    The case holds a whole `token`, or `header` fields that replace those of a signed one, or `edits` of it: each a
    place as a share of its length, how many characters go there, and the text that comes.
    """
    statement, header, signed = signed_token()
    token = case.get("token", signed)
    if "header" in case:
        fields = json.dumps(header.to_data() | case["header"], separators=(",", ":"), sort_keys=True)
        token = ".".join([signed.partition(".")[0], encode(fields.encode()), signed.rpartition(".")[2]])
    for place, removed, added in case.get("edits", ()):
        at = int(place * len(token))
        token = token[:at] + added + token[at + removed :]
    with suppress(AdmissibilityError):
        parsed, signature = parse_token(token)
        assert token == f"meve1.{encode(write_canonical(parsed.to_data()))}.{encode(signature)}"
    with suppress(AdmissibilityError):
        verify_statement(token, statement, {"k1": KEY.verifying}, 1_800_000_000.0)
        assert token == signed


TARGETS: Mapping = {
    "index": read_index, "policy": read_policy, "export": read_export, "messages": read_messages, "token": read_token,
}  # fmt: skip
