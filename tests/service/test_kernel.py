"""The kernel over HTTP: what it answers, whom it answers, and that its client never goes on without a slice."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace

import httpx
import jsonschema
import pytest

from meve.conversation import Conversation, SlicePolicy, TurnGraph
from meve.errors import (
    AdmissibilityError,
    ConfigurationError,
    UnknownIdError,
    ValidationError,
)  # fmt: skip
from meve.service._web.protocol import TimedProtocol
from meve.service._web.rates import RateLimiter
from meve.service.kernel.server import make_config
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.service.kernels import GRAPH, KEYS, SLICE, TALK, answering, ask, entries, open_kernel, serve

POLICY = SlicePolicy.paper()
TURN = {"id": "8", "parents": ["7"], "content": "0" * 64}


def test_client_gets_the_slice_that_a_local_cut_gives(served):
    with closing(served.authority()) as authority:
        cut = authority.cut(GRAPH, "7", POLICY)
        assert cut.turns == SLICE
        local = Conversation.from_messages(TALK).cut_slice("7", POLICY)
        assert replace(cut, token="") == local
        with pytest.raises(UnknownIdError):
            authority.cut(GRAPH, "none", POLICY)


def test_conversation_searches_what_the_kernel_admits_and_shows_its_token(served):
    with closing(served.authority(bearer=served.reader)) as authority:
        talk = Conversation.from_messages(TALK, embedder=WordEmbedder(), tokens=WordCounter(), authority=authority)
        context = talk.retrieve("When does it expire in an hour?", anchor="7", threshold=0.0)
    assert context.trace.token.startswith("meve1.")
    assert "4" not in {candidate.id for candidate in context.trace.candidates}


def test_turns_that_are_known_are_left_out_and_changed_ones_refused(served):
    with closing(served.authority()) as authority:
        assert authority.add(TALK) == 0
        for change in ({"text": "other"}, {"parents": ("2",)}, {"phase": "draft"}, {"time": "2026-01-01"}):
            with pytest.raises(AdmissibilityError, match=r"there already.*status 409"):
                authority.add(
                    [replace(TALK[3], **change) if change != {"parents": ("2",)} else replace(TALK[3], parents=("1",))]
                )


@pytest.mark.parametrize("tenant", ["other", "acme"])
def test_no_tenant_sees_anothers_conversation(served, tenant):
    with (
        closing(served.authority(bearer=served.other, tenant=tenant)) as authority,
        pytest.raises(AdmissibilityError, match="no conversation 'c'"),
    ):
        authority.cut(GRAPH, "7", POLICY)


def test_bearer_tokens_are_stored_hashed_and_revoked_at_once(served):
    token = served.kernel.store.grant("short", "acme")
    with closing(served.authority(bearer=token)) as authority:
        authority.cut(GRAPH, "7", POLICY)
        folder = served.kernel.store.database.file.parent
        assert not any(token.encode() in path.read_bytes() for path in folder.iterdir())
        served.kernel.store.revoke("short")
        with pytest.raises(AdmissibilityError, match="status 401"):
            authority.cut(GRAPH, "7", POLICY)


def test_kernel_file_holds_no_text(served):
    folder = served.kernel.store.database.file.parent
    assert not any(b"expires in an hour" in path.read_bytes() for path in folder.iterdir())


def test_content_key_hides_texts_from_guessing_and_must_be_shared(tmp_path):
    with serve(open_kernel(tmp_path)) as served, closing(served.authority(content_key=b"k" * 16)) as authority:
        authority.add(TALK)
        assert authority.cut(GRAPH, "7", POLICY).turns == SLICE
        with closing(served.authority()) as other, pytest.raises(AdmissibilityError, match="another content_key"):
            other.cut(GRAPH, "7", POLICY)


def test_rate_limiter_gives_a_burst_and_then_the_rate():
    now = [0.0]
    limiter = RateLimiter(2, 3, lambda: now[0])
    assert [limiter.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert limiter.take("b") == 0
    now[0] = 0.5
    assert [limiter.take("a"), limiter.take("a")] == [0, 0.5]


CASES = [
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "7"}, 200),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "7", "policy": {"phases": {"x": 0}, "child": 1}}, 200),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "none"}, 404),
    ("POST", "/slice", "reader", {"conversation": "none", "anchor": "7"}, 404),
    ("POST", "/slice", "other", {"conversation": "c", "anchor": "7"}, 404),
    ("POST", "/slice", None, {"conversation": "c", "anchor": "7"}, 401),
    ("POST", "/slice", "reader", b"no JSON", 400),
    ("POST", "/slice", "reader", b"[]", 400),
    ("POST", "/slice", "reader", b"[" * 2_000, 400),
    ("POST", "/slice", "reader", b"\xff", 400),
    ("POST", "/slice", "reader", {}, 422),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": 7}, 422),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "x" * 257}, 422),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "\ud83d"}, 422),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "7", "tenant": "other"}, 422),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "7", "policy": {"child": 2}}, 422),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "7", "policy": {"phases": {"x": "y"}}}, 422),
    ("POST", "/slice", "reader", {"conversation": "c", "anchor": "7", "policy": {"who": 1}}, 422),
    ("POST", "/slice", "reader", b" " * 3_000, 413),
    ("POST", "/turns", "bearer", {"conversation": "d", "turns": [{"id": "1", "content": "0" * 64}]}, 200),
    ("POST", "/turns", "bearer", {"conversation": "d", "turns": [{"id": "1", "content": "1" * 64}]}, 409),
    ("POST", "/turns", "bearer", {"conversation": "d", "turns": [{**TURN, "parents": ["none"]}]}, 404),
    ("POST", "/turns", "reader", {"conversation": "d", "turns": []}, 403),
    ("POST", "/turns", None, {}, 401),
    ("POST", "/turns", "bearer", {"conversation": "d", "turns": [{"id": "1"}]}, 422),
    ("POST", "/turns", "bearer", {"conversation": "d", "turns": [{**TURN, "time": 10**400}]}, 422),
    ("POST", "/turns", "bearer", {"conversation": "d", "turns": [{**TURN, "parents": ["7", "7"]}]}, 422),
    ("POST", "/turns", "bearer", {"conversation": "d", "turns": [{**TURN, "text": "x"}]}, 422),
    ("POST", "/turns", "bearer", {"conversation": 1, "turns": []}, 422),
    ("POST", "/turns", "bearer", b'{"conversation":"d","turns":[{"id":"9","content":"%064d","time":NaN}]}' % 0, 422),
    ("POST", "/forget", "reader", {"conversation": "d"}, 403),
    ("POST", "/forget", "bearer", {"conversation": "d"}, 200),
    ("POST", "/forget", "bearer", {"conversation": ""}, 422),
    ("GET", "/health", None, None, 200),
    ("GET", "/metrics", None, None, 200),
    ("GET", "/openapi.json", None, None, 200),
    ("GET", "/docs", None, None, 200),
]  # fmt: skip


def test_page_shows_all_of_the_openapi_document_and_loads_nothing(served):
    document, answer = httpx.get(f"{served.url}/openapi.json").json(), httpx.get(f"{served.url}/docs")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f"<h2>{method.upper()} {path}</h2><p>{operation['summary']}" in answer.text
            assert all(f"<th>{status}<td>" in answer.text for status in operation["responses"])
    assert all(f'<h2 id="{name}">' in answer.text for name in document["components"]["schemas"])
    assert not re.findall(r"<script|<img|<link|https?://", answer.text)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_every_answer_is_as_the_openapi_document_says(tmp_path, recorded):
    seen = set()
    with (
        serve(open_kernel(tmp_path, body_bytes=2_048, body_seconds=1, requests_per_second=1, burst=60)) as served,
        httpx.Client(base_url=served.url) as client,
    ):
        served.kernel.add("acme", "c", entries())
        document = client.get("/openapi.json").json()

        def check(path, method, response):
            answers = document["paths"][path][method.lower()]["responses"]
            content = answers[str(response.status_code)]["content"]
            ((kind, described),) = content.items()
            assert response.headers["content-type"].startswith(kind)
            if kind == "application/json":
                schema = {**described["schema"], "components": document["components"]}
                jsonschema.Draft202012Validator(schema).validate(response.json())
            seen.add((path, response.status_code))

        for method, path, who, body, status in CASES:
            headers = {"Authorization": f"Bearer {getattr(served, who)}"} if who else {}
            content = {"content": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
            if isinstance(body, dict) and body.get("anchor") == "\ud83d":
                content = {"content": b'{"conversation":"c","anchor":"\\ud83d"}'}
            response = client.request(method, path, headers=headers, **content)
            assert response.status_code == status, (method, path, body, response.text)
            check(path, method, response)

        def slow():
            yield b"{"
            time.sleep(1.5)
            yield b"}"

        reader = {"Authorization": f"Bearer {served.reader}"}
        check("/slice", "POST", client.post("/slice", headers=reader, content=slow()))
        served.kernel.keys = None  # a defect
        check("/slice", "POST", failed := client.post("/slice", headers=reader, json=CASES[0][3]))
        assert (failed.status_code, failed.json()["error"]["code"]) == (500, "internal")
        served.kernel.keys = KEYS
        while (limited := client.post("/slice", headers=reader, content=b"x")).status_code == 400:
            pass
        check("/slice", "POST", limited)
        assert limited.status_code == 429
        assert int(limited.headers["retry-after"]) >= 1
        assert recorded.points("meve.shed") == {(("meve.shed.kind", "rate"),): 1}
        served.kernel.store.close()
        for method, path in (("POST", "/forget"), ("GET", "/health")):
            check(path, method, client.request(method, path, headers=reader))
        assert client.get("/slice").status_code == 405
        assert client.get("/none").json()["error"]["code"] == "not_found"
    documented = {
        (path, int(status)) for path, item in document["paths"].items() if path == "/slice"
        for operation in item.values() for status in operation["responses"]
    }  # fmt: skip
    assert documented - seen <= {("/slice", 503)}


def test_kernel_that_is_down_stops_the_search(served):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with closing(served.authority(url=f"http://127.0.0.1:{port}")) as authority:
        talk = Conversation.from_messages(TALK, embedder=WordEmbedder(), tokens=WordCounter(), authority=authority)
        with pytest.raises(AdmissibilityError, match=r"can't be reached.*nothing was searched"):
            talk.retrieve("Why?", anchor="7")


def test_kernel_that_is_slow_stops_the_search(served):
    done = threading.Event()
    with answering(lambda connection: done.wait(20)) as url:
        begin = time.monotonic()
        with pytest.raises(AdmissibilityError, match=r"no answer in 0.3 s: nothing was searched"):
            ask(url, served, timeout=0.3)
        assert time.monotonic() - begin < 5
        done.set()


def test_kernel_that_sends_byte_by_byte_is_slow_too(served):
    """The time limit is one of the whole answer, not of each byte."""

    def trickle(connection):
        connection.recv(65_536)
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + b" " * 400:
            try:
                connection.sendall(bytes([byte]))
            except OSError:
                return
            time.sleep(0.02)

    with answering(trickle) as url:
        begin = time.monotonic()
        with pytest.raises(AdmissibilityError, match=r"no answer in 0\.5 s"):
            ask(url, served, timeout=0.5)
        assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_any_other_answer_stops_the_search(served, sent):
    def respond(connection):
        connection.recv(65_536)
        connection.sendall(sent)

    with answering(respond) as url, pytest.raises(AdmissibilityError):
        ask(url, served)


def test_request_is_sent_in_one_piece(served):
    """Otherwise the kernel wakes up for the headers, and again for the body."""
    received = []

    def respond(connection):
        received.append(connection.recv(65_536))

    with answering(respond) as url, pytest.raises(AdmissibilityError):
        ask(url, served)
    assert json.loads(received[0].partition(b"\r\n\r\n")[2])["anchor"] == "7"


def test_answers_are_sent_at_once_on_asyncios_own_loop(tmp_path, monkeypatch):
    """Otherwise the body waits until the client acknowledges the headers, some 40 ms."""
    no_delay, made = [], TimedProtocol.connection_made

    def make_connection(protocol, transport):
        made(protocol, transport)
        no_delay.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    def use_asyncio(kernel):
        config = make_config(kernel)
        config.loop = "asyncio"
        return config

    monkeypatch.setattr(TimedProtocol, "connection_made", make_connection)
    monkeypatch.setattr("tests.service.kernels.make_config", use_asyncio)
    with serve(open_kernel(tmp_path)) as served:
        httpx.get(f"{served.url}/health")
    assert no_delay == [1]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"url": "http://kernel.example:8321"}, "bearer token to the network"),
        ({"url": "ftp://127.0.0.1"}, "url must"), ({"url": "127.0.0.1"}, "url must"),
        ({"url": "http://127.0.0.1:99999"}, "url must"), ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"), ({"bearer": "a\nb"}, "bearer must"),
        ({"content_key": b"short"}, "content_key"),
        ({"tenant": " "}, "tenant must"), ({"conversation": "\ud83d"}, "conversation must"),
    ],
)  # fmt: skip
def test_invalid_arguments_of_the_client_are_named(served, arguments, match):
    with pytest.raises((ConfigurationError, ValidationError), match=match):
        served.authority(**arguments)


def test_many_threads_get_their_own_slices(served):
    graph = TurnGraph.from_turns(TALK)
    problems = []
    with closing(served.authority()) as authority:

        def ask_often():
            try:
                for turn in [turn.id for turn in TALK] * 5:
                    cut = authority.cut(graph, turn, SlicePolicy())
                    assert cut.anchor == turn
                    assert cut.turns[-1] == turn
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=ask_often) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems


FORKED = """
import os, sys
from meve.conversation import SlicePolicy
from meve.service.kernel import KernelAuthority
from tests.service.kernels import GRAPH, KEYS
keys = [key.verifying for key in KEYS.keys]
authority = KernelAuthority(sys.argv[1], bearer=sys.argv[2], tenant="acme", conversation="c", timeout=20, keys=keys)
authority.cut(GRAPH, "7", SlicePolicy())
child = os.fork()
for _ in range(60):
    authority.cut(GRAPH, "7", SlicePolicy())
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_process_has_connections_of_its_own(served):
    """Two processes on one connection would get each other's answers, and call the kernel's signatures forged."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, served.url, served.reader]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


def test_metrics_name_no_tenant_conversation_or_turn(served):
    text = httpx.get(f"{served.url}/metrics").text
    assert 'meve_kernel_requests_total{path="/slice",status="200"}' in text
    assert "acme" not in text
