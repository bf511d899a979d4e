"""The operations of the inspector: who may run them, what they show, and that looking changes nothing."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest

from meve import Retriever
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.memory import GovernedMemory
from meve.service.server._inspector_page import FOLDER
from meve.service.server.inspection import MEMORY, Inspection
from meve.service.server.operations import Caller
from meve.service.server.tokens import TokenFile
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.serve.servers import TEXTS, make_tokens, open_memory, serve

OWNER, OTHER = "anna's inspector", "bob's inspector"
QUERY = {"query": "Water tomatoes three times a week"}
ARGUMENTS = {
    "find_memories": {"query": "Where is the violin?"}, "show_memory": {"id": "violin"},
    "restore_memory": {"id": "violin"}, "hold_memory": {"id": "violin", "why": "a claim"},
    "release_memory": {"id": "violin"}, "erase_memory": {"id": "violin", "dry_run": False},
    "erase_all": {"dry_run": False}, "list_memories": {"which": "current"}, "export_memories": {}, "list_audit": {},
    "verify_audit": {},
}  # fmt: skip


@pytest.fixture
def inspected(index, tmp_path):
    """Return a server, whose memory is its attribute; anna has a memory `violin`."""
    with open_memory(tmp_path) as memory:
        tokens, given = make_tokens(tmp_path)
        memory.add("The violin is in the wardrobe.", user_id="anna", id="violin")
        with serve(index, memory, tokens=tokens) as served:
            served.tokens, served.memory = given, memory
            yield served


def test_every_operation_has_an_example():
    assert ARGUMENTS.keys() == MEMORY.keys()


@pytest.mark.parametrize("who", ["anna", "reader"])
def test_token_of_an_agent_inspects_nothing(inspected, who):
    for name, arguments in ARGUMENTS.items():
        answer = inspected.post(name, arguments, who)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), name
    assert inspected.memory.get("violin", user_id="anna").hold == ""
    assert not inspected.post("show_session", {}, who).json()["may_inspect"]


async def test_operations_are_no_tools_of_agents(inspected):
    async with inspected.connect(OWNER) as client:
        assert not {tool.name for tool in (await client.list_tools()).tools} & MEMORY.keys()
        for name, arguments in ARGUMENTS.items():
            with pytest.raises(Exception, match="no tool"):
                await client.call_tool(name, arguments)


def test_inspector_sees_nothing_of_another_user_and_changes_nothing(inspected):
    memory = inspected.memory
    memory.hold("violin", user_id="anna", why="claim")
    memory.release("violin", user_id="anna")
    before = memory.export(user_id="anna")
    for name, arguments in ARGUMENTS.items():
        answer = inspected.post(name, arguments, OTHER)
        has_id = "id" in arguments
        assert answer.status_code == (404 if has_id else 200), name
        told = answer.text if not has_id else answer.text.replace("'violin'", "")
        assert "violin" not in told, name
        assert "wardrobe" not in told, name
    after = memory.export(user_id="anna")
    assert {**after, "exported_at": ""} == {**before, "exported_at": ""}


def test_inspector_that_only_reads_changes_nothing(inspected):
    for name, arguments in ARGUMENTS.items():
        status = 403 if MEMORY[name].writes else 200
        assert inspected.post(name, arguments, "looker").status_code == status, name
    assert inspected.memory.get("violin", user_id="anna").hold == ""


def test_looking_is_not_logged_and_changes_no_score(inspected):
    memory = inspected.memory
    memory.add("The code of the safe is 4711.", user_id="anna", id="safe", policy_class="private")
    before = memory.audit.events(), memory.get("violin", user_id="anna")
    found = inspected.post("find_memories", {"query": "Where is the violin in the wardrobe?"}, OWNER).json()
    for name in ("show_memory", "list_memories", "list_audit", "verify_audit", "export_memories"):
        assert inspected.post(name, ARGUMENTS[name], OWNER).status_code == 200
    assert inspected.post("erase_all", {}, OWNER).json()["erased"] == ["safe", "violin"]  # a dry run by default
    assert (memory.audit.events(), memory.get("violin", user_id="anna")) == before
    recalled = inspected.post("recall", {"query": "Where is the violin in the wardrobe?"}).json()["text"]
    assert re.sub(r"memory \w+>", "", found["text"]) == re.sub(r"memory \w+>", "", recalled)
    private = inspected.post("find_memories", {"query": "The code of the safe"}, OWNER).json()
    assert "4711" not in private["text"]
    assert "4711" in next(each for each in private["about"] if each["memory"]["id"] == "safe")["memory"]["text"]


def test_replaced_memory_is_shown_with_its_history_and_restored(inspected):
    memory = inspected.memory
    memory.supersede("violin", "The violin is in the attic.", user_id="anna", id="attic")
    memory.supersede("attic", "The violin is sold.", user_id="anna", id="sold")
    shown = inspected.post("show_memory", {"id": "attic"}, OWNER).json()
    assert [[each["id"] for each in shown[name]] for name in ("earlier", "later")] == [["violin"], ["sold"]]
    assert [each["action"] for each in shown["events"]] == ["add", "supersede"]
    assert [each["id"] for each in inspected.post("show_memory", {"id": "sold"}, OWNER).json()["earlier"]] == [
        "attic", "violin",
    ]  # fmt: skip
    lists = inspected.post("list_memories", {"which": "replaced"}, OWNER).json()
    assert (lists["total"], lists["counts"]["current"], lists["counts"]["replaced"]) == (2, 1, 2)
    assert {each["id"]: each["replacement"] for each in lists["memories"]} == {
        "violin": "The violin is in the attic.", "attic": "The violin is sold.",
    }  # fmt: skip
    assert inspected.post("restore_memory", {"id": "attic"}, OWNER).json()["memory"]["superseded_by"] is None
    assert inspected.post("list_memories", {}, OWNER).json()["counts"]["replaced"] == 1


def test_hold_keeps_a_memory_until_its_release(inspected):
    held = inspected.post("hold_memory", {"id": "violin", "why": "a claim"}, OWNER).json()
    assert held["memory"]["hold"] == "a claim"
    for name in ("erase_memory", "erase_all"):
        assert inspected.post(name, ARGUMENTS[name], OWNER).json()["held"] == {"violin": "a claim"}
    assert inspected.post("restore_memory", {"id": "violin"}, OWNER).status_code == 409
    assert [e["id"] for e in inspected.post("list_memories", {"which": "on_hold"}, OWNER).json()["memories"]] == [
        "violin"
    ]
    assert inspected.post("release_memory", {"id": "violin"}, OWNER).json()["memory"]["hold"] == ""
    assert inspected.post("erase_memory", {"id": "violin"}, OWNER).json() == {
        "dry_run": True, "erased": ["violin"], "held": {}, "left_closed": [],
    }  # fmt: skip
    assert inspected.post("erase_memory", ARGUMENTS["erase_memory"], OWNER).json()["erased"] == ["violin"]
    assert inspected.post("show_memory", {"id": "violin"}, OWNER).status_code == 404
    erased = inspected.post("list_audit", {"erasures": True}, OWNER).json()["entries"]
    assert [(each["id"], each["action"], each["reason"]) for each in erased] == [
        ("violin", "delete", "in the inspector")
    ]


def test_release_of_a_memory_that_expired_on_hold_is_told(inspected, monkeypatch):
    memory = inspected.memory
    memory.add("The lease ends.", user_id="anna", id="lease", ttl=timedelta(days=1))
    memory.hold("lease", user_id="anna", why="a claim")
    later = memory.clock.now() + timedelta(days=2)
    monkeypatch.setattr(type(memory.clock), "now", lambda _: later)
    assert inspected.post("show_memory", {"id": "lease"}, OWNER).status_code == 404
    assert inspected.post("erase_all", {}, OWNER).json()["held"] == {"lease": "a claim"}
    held = inspected.post("hold_memory", {"id": "lease", "why": "a trial"}, OWNER)
    released = inspected.post("release_memory", {"id": "lease"}, OWNER)
    assert [(each.status_code, each.json()) for each in (held, released)] == [(200, {"memory": None})] * 2
    assert inspected.post("erase_all", {}, OWNER).json()["held"] == {}


def test_messages_and_long_texts_are_listed_and_found(inspected):
    memory = inspected.memory
    value = {"role": "user", "content": "Hello from Lima."}
    memory.messages.add("s", [value], user_id="anna")
    long = "The novel begins." + " And it goes on." * 200
    memory.add(long, user_id="anna", id="novel")
    found = inspected.post("list_memories", {"messages": True, "contains": "FROM lima"}, OWNER).json()["memories"]
    assert [each["text"] for each in found] == ["role: user\ncontent: Hello from Lima."]
    assert inspected.post("show_memory", {"id": found[0]["id"]}, OWNER).json()["memory"]["text"] == found[0]["text"]
    listed = inspected.post("list_memories", {"contains": "novel"}, OWNER).json()["memories"]
    assert listed[0]["text"] == long[:2_000] + "…"
    assert inspected.post("show_memory", {"id": "novel"}, OWNER).json()["memory"]["text"] == long


def test_what_ends_soon_comes_first(inspected):
    for name, days in (("later", 20), ("soon", 2), ("never", 90)):
        inspected.memory.add(f"It ends {name}.", user_id="anna", id=name, ttl=timedelta(days=days))
    ending = inspected.post("list_memories", {"which": "ending", "days": 30}, OWNER).json()
    assert [each["id"] for each in ending["memories"]] == ["soon", "later"]
    page = inspected.post("list_memories", {"limit": 1, "skip": 1, "contains": "IT ENDS"}, OWNER).json()
    assert (len(page["memories"]), page["total"]) == (1, 3)
    curve = inspected.post("show_memory", {"id": "soon"}, OWNER).json()["curve"]
    assert curve[-1]["at"] == ending["memories"][0]["expires_at"]


def test_check_of_the_log_tells_a_user_of_his_own_memories_only(tmp_path):
    options = {"embedder": WordEmbedder(), "tokens": WordCounter(), "audit_key": b"k" * 32}
    with GovernedMemory.open(tmp_path / "memory.db", **options) as memory:
        inspection = Inspection(memory=memory)
        for user in ("anna", "bob"):
            memory.add(f"{user} sings.", user_id=user, id=f"song-of-{user}")
        anna, bob = (Caller(user_id=user, may_inspect=True) for user in ("anna", "bob"))
        good = inspection.run("verify_audit", bob, {})
        assert (good.intact, good.keyed, good.compared, good.differs) == (True, True, True, {})
        with memory._runtime.store.backend.writing() as transaction:  # behind the log
            transaction.remove("s:anna", "song-of-anna")
        told = inspection.run("verify_audit", anna, {})
        assert (told.intact, told.differs) == (True, {"song-of-anna": ["missing"]})
        assert inspection.run("verify_audit", bob, {}).model_dump() == good.model_dump()


def test_one_check_of_the_log_runs_at_a_time(inspected, monkeypatch):
    checks, go_on, verify = threading.Semaphore(0), threading.Event(), inspected.memory.audit.store.verify

    def verify_slowly(*given):
        checks.release()
        assert go_on.wait(20)
        return verify(*given)

    monkeypatch.setattr(inspected.memory.audit.store, "verify", verify_slowly)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(inspected.post, "verify_audit", {}, OWNER)
        assert checks.acquire(timeout=20)
        second = inspected.post("verify_audit", {}, OTHER)
        go_on.set()
        assert first.result().json()["intact"]
    assert (second.status_code, second.headers["retry-after"]) == (503, "1")
    assert inspected.post("verify_audit", {}, OTHER).status_code == 200


def test_other_settings_are_tried_and_every_candidate_has_its_text(served):
    answer = served.post("try_documents", QUERY, "anna").json()
    assert {each["id"] for each in answer["trace"]["candidates"]} == answer["texts"].keys()
    assert [each["fate"] for each in answer["trace"]["candidates"]].count("dropped")
    vague = {"query": "Water tomatoes with cold tea"}
    strict = served.post(
        "try_documents", {**vague, "threshold": 1, "when_insufficient": "verified_only"}, "anna"
    ).json()
    assert (strict["text"], strict["sufficient"]) == ("", False)
    small = served.post("try_documents", {**QUERY, "max_tokens": 16, "threshold": 0}, "anna").json()
    assert small["tokens"] <= small["max_tokens"] == 16
    every = served.post("try_documents", {**vague, "threshold": 1}, "anna").json()
    assert "[not verified]" in every["text"]
    assert any(each["fate"] == "kept" for each in every["trace"]["candidates"])
    assert served.post("try_documents", {**QUERY, "threshold": 1.1}, "anna").status_code == 422


def test_other_thresholds_verify_nothing_again(monkeypatch):
    readings = []
    read = CrossEncoderVerifier._read
    monkeypatch.setattr(CrossEncoderVerifier, "_read", lambda *given: readings.append(given) or read(*given))
    inspection = Inspection(retriever=Retriever.from_texts(TEXTS))
    for threshold in (0.5, 0.1, 0.9):
        settings = {"threshold": threshold, "redundancy": threshold, "max_tokens": 100}
        answer = inspection.run("try_documents", Caller(user_id=None), {**QUERY, **settings})
        assert answer.trace["phases"][1]["settings"]["threshold"] == threshold
    assert len(readings) == 1


def test_memory_in_postgresql_is_served(postgres_url, tmp_path):
    options = {"embedder": WordEmbedder(), "tokens": WordCounter(), "key_file": tmp_path / "memory.keys"}
    with GovernedMemory.open(postgres_url, **options) as memory, serve(memory=memory) as served:
        kept = served.post("remember", {"text": "The violin is in the wardrobe."}).json()["id"]
        assert "wardrobe" in served.post("recall", {"query": "Where is the violin?"}).text
        for name, arguments in ARGUMENTS.items():
            given = {**arguments, "id": kept} if "id" in arguments else arguments
            assert served.post(name, given).status_code == 200, name
        assert memory.list(user_id="anna") == []


def test_older_token_permits_no_inspection(tmp_path):
    file = TokenFile(tmp_path / "tokens.json")
    token = file.grant("anna", may_inspect=True)
    data = json.loads(file.path.read_text())
    del data["tokens"][0]["may_inspect"]
    file.path.write_text(json.dumps(data))
    assert not file.authenticate(token).may_inspect
    data["tokens"][0]["may_inspect"] = "yes"
    file.path.write_text(json.dumps(data))
    assert file.authenticate(token) is None


def test_page_loads_its_own_files_only(served):
    page = httpx.get(f"{served.url}/", follow_redirects=True)
    assert page.url.path == "/inspector"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert "<script>" not in page.text
    for file in FOLDER.iterdir():
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 400, file.name
        urls = set(re.findall(r"https?://[^\"' ]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not urls, (file.name, urls)
        if file.name != "index.html":
            answer = httpx.get(f"{served.url}/inspector/{file.name}")
            assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff")
            assert answer.headers["content-type"].startswith(("text/javascript", "text/css"))
    assert httpx.get(f"{served.url}/inspector/../_guard.py").status_code == 404
