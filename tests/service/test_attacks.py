"""Attacks by strangers and tenants: none stops the kernel, leaks a secret or widens a slice."""

import contextlib
import json
import logging
import socket
import sqlite3
import threading
import time
from contextlib import closing

import httpx
import pytest

from meve.conversation import SlicePolicy
from meve.errors import AdmissibilityError
from meve.service._web import protocol
from meve.service.kernel import SigningKey
from tests.service.kernels import GRAPH, KEY, SLICE, answering, ask, entries, open_kernel, serve

POLICY = SlicePolicy.paper()
ASK = json.dumps({"conversation": "c", "anchor": "7"}).encode()


def send(url, *parts, wait=10.0, pause=0.0):
    """Send bytes over one connection, and return what comes back until it is closed; None if it stays open."""
    answer = b""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), wait) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            while more := connection.recv(65_536):
                answer += more
        except ConnectionError:
            return answer
        except TimeoutError:
            return None
    return answer


def request(bearer, body=ASK, *headers, path="/slice", length=None):
    lines = [
        f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {bearer}", f"Content-Length: {length or len(body)}",
        "Connection: close", *headers,
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def status(answer):
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], 200),
        (["Transfer-Encoding: chunked"], 400),
        (["Content-Length: 5"], 400),
        (["X: a", " Authorization: Bearer x"], 200),  # a folded line belongs to X
        (["X: a\0b"], 400),
        (["Authorization: Bearer x"], 401),
        (["Upgrade: h2c"], 200),
        ([f"X-{n}: {'a' * 100}" for n in range(2_000)], 400),
    ],
)
def test_ambiguous_headers_are_refused(served, headers, expected):
    """A proxy may read such headers otherwise than the kernel, and so let another request pass."""
    assert status(send(served.url, request(served.reader, ASK, *headers))) == expected


@pytest.mark.parametrize("length", ["+45", "-45", "0x2d", "1" * 30])
def test_odd_lengths_are_refused(served, length):
    assert status(send(served.url, request(served.reader, ASK, length=length))) in (400, 413)


@pytest.mark.parametrize("bearer", ["", " ", "mvk_", "mvk_\xe9", "\xff" * 300, "a" * 5_000, "x' OR '1'='1", "%s?"])
def test_no_other_token_is_accepted(served, bearer):
    assert status(send(served.url, request(bearer))) == 401


@pytest.mark.parametrize("path", ["/slice/", "//slice", "/slice/../turns", "/SLICE", "/%73lice/", "/"])
def test_other_paths_answer_nothing_and_redirect_nowhere(served, path):
    answer = send(served.url, request(served.bearer, ASK, path=path))
    assert status(answer) == 404
    assert b"location" not in answer.lower()


@pytest.mark.parametrize(
    "body",
    [
        b'{"conversation":"c","\\ud800":1}',
        b'{"conversation":"c","turns":[{"id":"1","content":"' + b"0" * 64 + b'","\\ud800":1}]}',
        b'{"conversation":"c","anchor":"\\ud800","nonce":"\\ud800"}',
        b'{"conversation":"c","anchor":"7","policy":{"\\ud800":1}}',
        b'{"conversation":"c","anchor":"7","policy":{"phases":{"\\ud800":1}}}',
        b'{"conversation":"c","anchor":"7","policy":{"max_turns":' + b"9" * 400 + b"0.5}}",
        b'{"conversation":"c","anchor":"7","policy":{"child":1e999}}',
        b'{"conversation":"c","anchor":"7","policy":{"max_turns":' + b"9" * 5_000 + b"}}",
        b"[" * 500_000,
        b"[" + b"[]," * 30_000 + b"[]]",
        b'{"a":' * 100_000,
        b"\x1f\x8b\x08\x00",
    ],
)  # fmt: skip
def test_malformed_bodies_get_an_answer_and_no_log_entry(served, body, caplog):
    for path in ("/slice", "/turns", "/forget"):
        answer = send(served.url, request(served.bearer, body, path=path))
        assert status(answer) in (400, 422), (path, answer)
        json.loads(answer.partition(b"\r\n\r\n")[2])
    assert not caplog.records


def test_slow_headers_and_idle_connections_are_closed(tmp_path, monkeypatch):
    """Otherwise a few hundred connections that say nothing would keep everybody out."""
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.3)
    with serve(open_kernel(tmp_path)) as served:
        served.kernel.add("acme", "c", entries())
        assert send(served.url) == b""
        assert send(served.url, b"POST /slice HTTP/1.1\r\nHost: x\r\n") == b""
        kept = request(served.reader).replace(b"Connection: close\r\n", b"")
        answer = send(served.url, kept, b"", b"POST /slice HTTP/1.1\r\n", pause=0.5)
        assert answer is not None
        assert status(answer) == 200
        with httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {served.reader}"}) as client:
            for _ in range(3):  # a connection that waits between whole requests is kept
                assert client.post("/slice", content=ASK).status_code == 200
                time.sleep(0.5)


def test_unauthenticated_bodies_are_never_waited_for(served):
    assert status(send(served.url, request("x", b"", length=1_000_000))) == 401


def test_many_silent_connections_leave_room_after_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 1.0)
    with serve(open_kernel(tmp_path)) as served:
        port = int(served.url.rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(520)]
        try:
            time.sleep(2.0)
            assert httpx.get(f"{served.url}/health").status_code == 200
        finally:
            for connection in silent:
                connection.close()


def test_secrets_are_in_no_log_answer_or_metric(tmp_path, caplog, capfd):
    """Whatever fails, and at the most talkative level."""
    caplog.set_level(logging.DEBUG)
    kernel = open_kernel(tmp_path)
    answers = b""
    with serve(kernel) as served:
        kernel.add("acme", "c", entries())
        bearer, secret = served.bearer, "c2VjcmV0LXRleHQ"
        for body in (ASK, b"nonsense", json.dumps({"conversation": secret, "anchor": "7"}).encode()):
            answers += send(served.url, request(bearer, body))
        answers += send(served.url, request(bearer, ASK, "Transfer-Encoding: chunked"))
        keys, kernel.keys = kernel.keys, None
        answers += send(served.url, request(bearer))
        kernel.keys = keys
        kernel.store.close()
        answers += send(served.url, request(bearer))
        answers += httpx.get(f"{served.url}/metrics").content + httpx.get(f"{served.url}/openapi.json").content
    logged = caplog.text + "".join(capfd.readouterr())
    for each in (bearer, served.reader, KEY.secret.hex(), str(KEY.secret)):
        assert each not in logged
        assert each.encode() not in answers
    assert secret not in logged


def test_answer_of_before_a_branch_was_closed_is_refused_later(served):
    """A neighbour on the network replays the kernel's own answer."""
    with closing(served.authority()) as authority:
        kept = []
        ask = authority._ask
        authority._ask = lambda path, data: kept.append(ask(path, data)) or kept[0]
        assert authority.cut(GRAPH, "7", POLICY).turns == SLICE
        with pytest.raises(AdmissibilityError, match="replayed"):
            authority.cut(GRAPH, "7", POLICY)


def test_message_of_a_lying_kernel_stays_on_one_line(served):
    body = json.dumps({"error": {"message": "x\r\n2026-11-26 root logged in\x1b[2J"}}).encode()
    sent = b"HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def respond(connection):
        connection.recv(65_536)
        connection.sendall(sent)

    with answering(respond) as url, pytest.raises(AdmissibilityError) as caught:
        ask(url, served)
    assert str(caught.value).isprintable()


def test_tenants_flood_leaves_other_tenants_their_rate(tmp_path):
    with serve(open_kernel(tmp_path, requests_per_second=1, burst=5)) as served:
        codes = {status(send(served.url, request(served.reader))) for _ in range(10)}
        assert codes == {404, 429}
        assert status(send(served.url, request(served.other))) == 404
        assert status(send(served.url, request("x"))) == 401


def test_writers_that_wait_leave_room_for_slices(tmp_path):
    """A writer waits for whoever locks the file; as many as there are threads would keep every tenant out."""
    with serve(open_kernel(tmp_path)) as served, contextlib.ExitStack() as stack:
        served.kernel.add("acme", "c", entries())
        lock = stack.enter_context(closing(sqlite3.connect(tmp_path / "kernel.db", isolation_level=None)))
        lock.execute("BEGIN IMMEDIATE")
        body = json.dumps({"conversation": "c", "turns": []}).encode()
        address = ("127.0.0.1", int(served.url.rpartition(":")[2]))
        writers = [stack.enter_context(socket.create_connection(address, 20)) for _ in range(45)]
        for writer in writers:
            writer.sendall(request(served.bearer, body, path="/turns"))
        time.sleep(0.5)
        with closing(served.authority(timeout=3.0)) as authority:
            assert authority.cut(GRAPH, "7", POLICY).turns == SLICE
        assert httpx.get(f"{served.url}/health", timeout=3.0).status_code == 200
        lock.execute("ROLLBACK")
        assert {status(writer.recv(65_536)) for writer in writers} <= {200, 503}


def test_keys_may_rotate_under_load(tmp_path):
    """Every slice verifies with one of the two keys, before, at and after the change."""
    with serve(open_kernel(tmp_path, requests_per_second=10**6, burst=10**6)) as served:
        kernel = served.kernel
        kernel.add("acme", "c", entries())
        both = kernel.keys.add(SigningKey.generate("k2"))
        problems, stop = [], threading.Event()

        def ask_often():
            keys = [key.verifying for key in both.keys]
            with closing(served.authority(keys=keys)) as authority:
                while not stop.is_set():
                    try:
                        assert authority.cut(GRAPH, "7", POLICY).turns == SLICE
                    except BaseException as error:
                        problems.append(error)

        threads = [threading.Thread(target=ask_often) for _ in range(3)]
        for thread in threads:
            thread.start()
        for current in ("k2", "k1") * 10:
            kernel.keys = both.use(current)
            time.sleep(0.02)
        stop.set()
        for thread in threads:
            thread.join()
        assert problems == []
