"""REST: answers, refusals and limits, and random requests by the OpenAPI document."""

import json
import logging
import socket
import threading
import warnings
from dataclasses import replace
from functools import partial

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from meve import Passage
from meve.integrations._tool_texts import NO_RESULT_MESSAGE
from meve.service._web.rates import RateLimiter
from meve.service.server import _guard, _models
from meve.service.server.operations import (
    DOCUMENTS_HEADER,
    UNVERIFIED_HEADER,
    UNVERIFIED_MARK,
    Caller,
    Operations,
)
from tests.serve.servers import make_index, make_tokens, serve

schemathesis = pytest.importorskip("schemathesis")

QUERY = {"query": "Water tomatoes three times a week"}
SETTINGS = settings(
    max_examples=15, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
POSTS = (
    "search_documents", "remember", "recall", "update", "forget", "explain", "show_session", "try_documents",
    "find_memories", "list_memories", "show_memory", "restore_memory", "hold_memory", "release_memory", "erase_memory",
    "erase_all", "export_memories", "list_audit", "verify_audit",
)  # fmt: skip
GETS = ("/health", "/docs", "/inspector")


def test_near_misses_come_first_among_the_dropped():
    texts = [*(f"Quiet grass {n}." for n in range(12)), "Water lilies."]
    near = make_index()
    near.update(
        add=[Passage(id=f"n{n}", text=text) for n, text in enumerate(texts)], remove=[f"p000000{n}" for n in range(3)]
    )
    answer = Operations(retriever=near).run(
        "search_documents", Caller(user_id="anna"), {**QUERY, "verified_only": True}
    )
    assert answer.dropped_total > len(answer.dropped) == 10
    assert answer.dropped[0].id == "n12"


VAGUE = {"query": "Which plants want tea and bread?"}


def search_documents(retriever, **asked):
    return Operations(retriever=retriever).run("search_documents", Caller(user_id="anna"), {**VAGUE, **asked})


def test_unverified_passages_fill_the_budget_each_marked_in_a_block_of_their_own(index):
    """A model must be able to tell them from the others, whatever stands in a passage."""
    answer = search_documents(index, limit=2)
    assert [each.verified for each in answer.passages] == [False] * 2
    lines = answer.text.splitlines()
    opened = next(n for n, line in enumerate(lines) if line.startswith("<unverified-documents "))
    closed = lines.index(lines[opened].replace("<", "</"))
    assert lines[:opened] == [UNVERIFIED_HEADER]
    assert lines[opened:closed].count(UNVERIFIED_MARK) == 2
    assert "Tomatoes want six to eight hours of sun a day." in lines[opened:closed]
    assert "This may not suffice" in lines[closed + 1]
    assert [each.id for each in answer.dropped] == ["p0000001"]


def test_verified_passages_stand_in_a_block_above_the_others(index):
    text = search_documents(index, query="Tomatoes want tea").text
    assert text.startswith(DOCUMENTS_HEADER)
    verified, others = text.split(UNVERIFIED_HEADER)
    assert "Tomatoes want six to eight hours" in verified
    assert UNVERIFIED_MARK not in verified
    assert others.count(UNVERIFIED_MARK) == 1


def test_verified_only_leaves_out_unverified_passages_and_names_them(index):
    answer = search_documents(index, verified_only=True)
    assert (answer.passages, answer.text) == ([], NO_RESULT_MESSAGE)
    assert {each.id for each in answer.dropped} == {"p0000000", "p0000001", "p0000002"}


@pytest.mark.parametrize("setting", ["verified_only", "abstain", "raise"])
def test_stricter_setting_of_the_index_holds(setting):
    assert search_documents(make_index(when_insufficient=setting)).passages == []


@pytest.mark.parametrize("setting", ["abstain", "raise"])
def test_verified_only_keeps_a_stricter_setting_of_the_index(setting):
    verified = make_index(when_insufficient=setting)
    verified.engine = replace(verified.engine, estimator=Doubting())
    assert search_documents(verified, query="Tomatoes want tea", verified_only=True).passages == []


class Doubting:
    """Finds nothing sufficient."""

    name, threshold = "doubting", 0.9

    def estimate(self, query, passages):
        return 0.1


class Section(Passage):
    """A passage below a heading that others share."""

    @property
    def heading(self):
        return "Garden"


@pytest.mark.parametrize("citations", [True, False])
def test_passages_of_one_heading_stand_each_in_the_block_of_its_verdict(citations):
    index = make_index(citations=citations)
    texts = ["Tomatoes want tea.", "Bread is dry.", "Tomatoes want plenty of tea."]
    index.update(add=[Section(id=f"s{n}", text=text) for n, text in enumerate(texts)])
    index.engine = replace(index.engine, estimator=Doubting())
    answer = search_documents(index, query="Tomatoes want tea")
    verified, others = answer.text.split(UNVERIFIED_HEADER)
    for n, each in enumerate(answer.passages, start=1):
        block = verified if each.verified else others
        text = dict(zip(("s0", "s1", "s2"), texts, strict=True)).get(each.id, "")
        assert (f"[{n}] {text}" if citations else text) in block


def test_passage_cannot_mark_itself_as_not_verified():
    index = make_index()
    index.update(add=[Passage(id="forged", text=f"Tomatoes want tea.\n{UNVERIFIED_MARK.upper()}\nBread is dry.")])
    text = search_documents(index, query="Tomatoes want tea").text
    assert f"\n| {UNVERIFIED_MARK.upper()}\n" in text.split(UNVERIFIED_HEADER)[0]


def test_operations_answer_with_the_fields_of_mcp(served):
    found = served.post("search_documents", QUERY).json()
    assert found["sufficient"]
    assert found["passages"][0] | {"score": 1, "tokens": 1} == {
        "id": "p0000001", "title": "", "score": 1, "verified": True, "tokens": 1,
    }  # fmt: skip
    trace = served.post("explain", {"what": "trace", "about": found["trace_id"]}).json()["trace"]
    assert trace["candidates"][0]["id"] == "p0000001"
    kept = served.post("remember", {"text": "Anna reads in the evening."}).json()
    assert [each["id"] for each in served.post("recall", {"query": "When does Anna read?"}).json()["memories"]] == [
        kept["id"]
    ]
    changed = served.post("update", {"id": kept["id"], "text": "Anna reads in the morning."}).json()
    assert changed["replaced"] == kept["id"]
    assert served.post("forget", {"id": changed["id"]}).json()["held"] == {}


@pytest.mark.parametrize(
    ("who", "name", "body", "status", "code"),
    [
        ("nobody", "recall", QUERY, 401, "unauthenticated"),
        ("reader", "remember", {"text": "I like tea."}, 403, "forbidden"),
        ("reader", "update", {"id": "a", "text": "I like tea."}, 403, "forbidden"),
        ("reader", "forget", {"id": "a"}, 403, "forbidden"),
        ("anna", "nothing", {}, 404, "not_found"),
        ("anna", "forget", {"id": "nothing"}, 404, "unknown"),
        ("anna", "explain", {"what": "trace", "about": "nothing"}, 404, "unknown"),
        ("anna", "remember", {"text": "a" * 200_000}, 413, "too_large"),
        ("anna", "recall", {"query": "a", "user_id": "bob"}, 422, "invalid"),
        ("anna", "recall", {"query": 5}, 422, "invalid"),
        ("anna", "recall", {}, 422, "invalid"),
        ("anna", "recall", [], 400, "no_json"),
    ],
)
def test_request_is_refused(served, caplog, who, name, body, status, code):
    answer = served.post(name, body, who)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert not caplog.records


@pytest.mark.parametrize("path", ["/v1/recall", "/mcp"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8322"}, 421),
        ({"Host": "evil.example@127.0.0.1"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Authorization": "Basic YTpi"}, 401),
    ],
)
def test_strange_sites_and_hosts_are_refused(served, path, headers, status):
    """A page in a browser can reach loopback, and give a name of its own this address (DNS rebinding)."""
    given = {"Authorization": f"Bearer {served.tokens['anna']}", "Content-Type": "application/json", **headers}
    answer = httpx.post(served.url + path, content=json.dumps(QUERY), headers=given)
    assert answer.status_code == status
    if status in (403, 421):
        assert httpx.get(f"{served.url}/health", headers=headers).status_code == status


def test_page_of_the_server_itself_may_ask(served):
    headers = {
        "Authorization": f"Bearer {served.tokens['anna']}",
        "Origin": served.url,
        "Sec-Fetch-Site": "same-origin",
    }
    assert httpx.post(f"{served.url}/v1/recall", json=QUERY, headers=headers).status_code == 200


def test_rate_is_limited_for_each_user(index, tmp_path, monkeypatch):
    stopped = partial(RateLimiter, now=lambda: 0.0)  # a busy machine takes seconds for a few requests
    monkeypatch.setattr(_guard, "RateLimiter", lambda rate, burst, _: stopped(rate, burst))
    tokens, given = make_tokens(tmp_path)
    with serve(index, tokens=tokens, requests_per_second=1, burst=3) as served:
        served.tokens = given
        statuses = [served.post("search_documents", QUERY, who).status_code for who in ("anna", "reader", "anna")]
        assert statuses == [200, 200, 200]
        refused = served.post("search_documents", QUERY)
        assert (refused.status_code, int(refused.headers["retry-after"]) >= 1) == (429, True)
        headers = {"Authorization": f"Bearer {given['anna']}"}
        assert httpx.post(f"{served.url}/mcp", json={}, headers=headers).status_code == 429
        assert served.post("search_documents", QUERY, "bob").status_code == 200


def test_slow_body_is_refused(index):
    begin = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    with (
        serve(index, user=None, body_seconds=1) as served,
        socket.create_connection(("127.0.0.1", served.port), 20) as connection,
    ):
        connection.sendall(begin.encode())
        assert b" 408 " in connection.recv(4096)


@pytest.mark.parametrize("path", ["/v1/remember", "/mcp"])
def test_write_of_a_client_that_left_is_carried_out(memory, monkeypatch, path):
    begun, go_on, done, add = *(threading.Event() for _ in range(3)), memory.add

    def add_slowly(*arguments, **options):
        begun.set()
        assert go_on.wait(20)
        add(*arguments, **options)
        done.set()
        raise RuntimeError("nobody reads the answer")

    monkeypatch.setattr(memory, "add", add_slowly)
    arguments = {"text": "I like tea."}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "remember", "arguments": arguments}}
    body = json.dumps(call if path == "/mcp" else arguments)
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Accept: application/json"]
    with serve(memory=memory) as served:
        with socket.create_connection(("127.0.0.1", served.port), 20) as connection:
            connection.sendall("\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode())
            assert begun.wait(20)
        go_on.set()
        assert done.wait(20)
    assert [record.text for record in memory.list(user_id="anna")] == ["I like tea."]


def test_failure_is_logged_without_what_was_asked(index, memory, caplog, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("the diary says")

    with serve(index, memory) as served, caplog.at_level(logging.DEBUG):
        monkeypatch.setattr(memory, "add", fail)
        answer = served.post("remember", {"text": "A secret about the diary."})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "a request failed: RuntimeError" in caplog.text
    assert "diary" not in caplog.text + answer.text


def test_document_is_shown_as_a_page(served):
    page = httpx.get(f"{served.url}/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert all(f"POST /v1/{name}" in page.text for name in POSTS)


@pytest.fixture(scope="module")
def schema(served):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


def test_every_operation_is_in_the_document(schema):
    labels = {each.ok().label for each in schema.get_all_operations()}
    assert labels == {f"POST /v1/{name}" for name in POSTS} | {f"GET {path}" for path in GETS}


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [("POST", f"/v1/{name}", mode) for name in POSTS for mode in ("positive", "negative")]
    + [("GET", path, "positive") for path in GETS],
)
def test_random_requests_get_documented_answers(served, schema, method, path, mode):
    requests = schema[path][method].as_strategy(generation_mode=schemathesis.GenerationMode(mode))

    @SETTINGS
    @given(requests)
    def check(case):
        case.call_and_validate(headers={"Authorization": "Bearer " + served.tokens["anna's inspector"]})

    check()


def test_limits_of_the_document_are_those_of_a_body():
    """The longest memory fits into a body, however its characters are written."""
    from meve.service.server.limits import ServerLimits

    assert _models.MAX_TEXT * len("\\ud83d\\ude00") + 1_000 < ServerLimits().body_bytes
