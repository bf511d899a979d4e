"""A key service that holds the master key."""

import base64
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from meve.errors import KeyFileError
from meve.memory import GovernedMemory, copy_memory
from meve.memory.copying import MemoryPlace
from tests.memories import KEY, open_memory
from tests.memory.sealed_files import key_file


class KeyService:
    """Encrypts and decrypts short secrets over HTTP with a key that never leaves it."""

    def __init__(self):
        self.key, self.is_enabled, self.calls = AESGCM(os.urandom(32)), True, 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                service.calls += 1
                given = base64.b64decode(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["secret"])
                self.send_response(200 if service.is_enabled else 403)
                self.end_headers()
                if service.is_enabled:
                    code = service.key.decrypt if self.path == "/decrypt" else service.key.encrypt
                    self.wfile.write(base64.b64encode(code(b"0" * 12, given, None)))

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.wrapped = self.call("encrypt", os.urandom(32))

    def call(self, what, secret):
        body = json.dumps({"secret": base64.b64encode(secret).decode()}).encode()
        address = f"http://127.0.0.1:{self.server.server_port}/{what}"
        try:
            with urllib.request.urlopen(urllib.request.Request(address, body)) as answer:
                return base64.b64decode(answer.read())
        except urllib.error.HTTPError as refusal:
            refusal.close()
            raise

    def master(self):
        return self.call("decrypt", self.wrapped)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def service():
    made = KeyService()
    yield made
    made.close()


def test_disabled_key_lets_nobody_open_the_memory_and_changes_nothing(service, file):
    with open_memory(file, master_key=service.master) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
        service.is_enabled = False
        memory.add("I like bread.", user_id="alice", id="bread")  # who has it open goes on
        memory.delete("tea", user_id="alice")
    before = key_file(file).read_bytes()
    with pytest.raises(KeyFileError, match="getting the master key failed: HTTPError: HTTP Error 403"):
        open_memory(file, master_key=service.master)
    assert key_file(file).read_bytes() == before
    service.is_enabled = True
    calls = service.calls
    with open_memory(file, master_key=service.master) as memory:
        assert [record.id for record in memory.list(user_id="alice")] == ["bread"]
        assert memory.audit.verify().ok
    assert service.calls == calls + 1  # once for each opening


def test_service_that_fails_at_the_first_opening_leaves_no_memory(service, file):
    service.is_enabled = False
    with pytest.raises(KeyFileError, match="getting the master key failed"):
        open_memory(file, master_key=service.master)
    service.is_enabled = True
    with open_memory(file, master_key=service.master) as memory:
        memory.add("I like tea.", user_id="alice")
    with pytest.raises(KeyFileError, match="none was given"):
        open_memory(file)


def test_copy_moves_a_memory_to_the_key_of_a_service(service, tmp_path):
    source, target = tmp_path / "a.db", tmp_path / "b.db"
    with open_memory(source) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    copy_memory(MemoryPlace(file=source), MemoryPlace(file=target, master_key=service.master), audit_key=KEY)
    with open_memory(target, master_key=service.master) as memory:
        assert [record.id for record in memory.list(user_id="alice")] == ["tea"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_master_key_may_come_from_a_pipe(tmp_path):
    """So that a command that asks a key service can give it: --master-key <(command)."""
    master = b"a master key, long enough for it"
    with GovernedMemory.open(tmp_path / "memory.db", master_key=master, embedder="static") as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    os.mkfifo(tmp_path / "pipe")
    command = ["memory", "--master-key", tmp_path / "pipe", "verify", "--file", tmp_path / "memory.db"]
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(master,))
    writer.start()
    done = subprocess.run([sys.executable, "-m", "meve.cli", *command], check=False, capture_output=True, text=True)
    writer.join()
    assert done.stdout.startswith("the log is intact: 1 entry"), done.stderr
