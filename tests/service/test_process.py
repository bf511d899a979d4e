"""The kernel as a process: its keys, its start, its death."""

import os
import signal
import socket
import stat
import subprocess
import time
from contextlib import closing

import httpx
import pytest

from meve.conversation import SlicePolicy
from meve.errors import AdmissibilityError, ConfigurationError
from meve.service.kernel import KernelAuthority, KernelLimits, SigningKey, SigningKeys, read_verifying_keys
from meve.signing_keys import ENVIRONMENT
from tests.served_process import MEVE, served_process
from tests.service.kernels import GRAPH, KEYS, SLICE, TALK

POLICY = SlicePolicy.paper()


def run(*arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if name not in (ENVIRONMENT, "MEVE_KERNEL")}
    return subprocess.run(
        [*MEVE, "kernel", *map(str, arguments)], capture_output=True, text=True, timeout=120,
        env={**clean, **environment},
    )  # fmt: skip


def serving(*arguments, log, **environment):
    """Run a kernel; yield the process and its URL."""
    says = r"listening on (http://127\.0\.0\.1:\d+), signing with key (\S+)\n"
    everything = {**os.environ, "PYTHONUNBUFFERED": "", **environment}
    return served_process("kernel", "serve", *arguments, says=says, log=log, environment=everything)


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_kernel_is_started_killed_and_restarted_and_keys_are_rotated(tmp_path):
    keys, file, log, public = (tmp_path / name for name in ("kernel.keys", "kernel.db", "log", "public.json"))
    assert "created" in run("new-key", "2026-10", "--keys", keys).stdout
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    public.write_text(run("public-keys", "--keys", keys).stdout)
    bearer = run("grant", "app", "--tenant", "acme", "--may-add", "--graph", file).stdout.strip()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    options = ("--graph", file, "--keys", keys, "--port", port)

    def make_authority():
        return KernelAuthority(
            f"http://127.0.0.1:{port}", bearer=bearer, tenant="acme", conversation="c", timeout=30,
            keys=read_verifying_keys(public),
        )  # fmt: skip

    with closing(make_authority()) as authority:
        with serving(*options, log=log) as (process, url):
            assert authority.add(TALK) == len(TALK)
            first = authority.cut(GRAPH, "7", POLICY)
            assert first.turns == SLICE
            assert httpx.get(f"{url}/health").json()["key"] == "2026-10"
            with pytest.raises(OSError):  # noqa: PT011 - bound to loopback's first address, not to all
                socket.create_connection(("127.0.0.2", port), 5).close()
            process.kill()
            process.wait()
            with pytest.raises(AdmissibilityError, match="can't be reached"):
                authority.cut(GRAPH, "7", POLICY)
        with serving(*options, log=log):
            assert authority.cut(GRAPH, "7", POLICY).turns == SLICE
            assert authority.add(TALK) == 0

        run("new-key", "2026-11", "--keys", keys)
        public.write_text(run("public-keys", "--keys", keys).stdout)
        assert "signs" in run("use-key", "2026-11", "--keys", keys).stdout
        assert run("remove-key", "2026-11", "--keys", keys).returncode == 1
        with serving(*options, log=log) as (process, url):
            with pytest.raises(AdmissibilityError, match="'2026-11', which isn't among 2026-10"):
                authority.cut(GRAPH, "7", POLICY)
            with closing(make_authority()) as renewed:
                assert renewed.cut(GRAPH, "7", POLICY).turns == SLICE
            run("new-key", "2026-12", "--keys", keys)
            public.write_text(run("public-keys", "--keys", keys).stdout)
            run("use-key", "2026-12", "--keys", keys)
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: httpx.get(f"{url}/health").json()["key"] == "2026-12")
            with closing(make_authority()) as renewed:
                assert renewed.cut(GRAPH, "7", POLICY).turns == SLICE
            good = keys.read_text()
            keys.write_text("{}")
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: "the keys stay as they are" in log.read_text())
            assert httpx.get(f"{url}/health").json()["key"] == "2026-12"
            keys.write_text(good)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert not [*tmp_path.glob("kernel.db-*")]  # it closed the file, which is whole without its log
    assert "removed" in run("remove-key", "2026-10", "--keys", keys).stdout
    secrets = [row.secret for row in SigningKeys.load(keys).keys]
    for path in (log, public, *tmp_path.glob("kernel.db*")):
        content = path.read_bytes()
        assert all(secret not in content and secret.hex().encode() not in content for secret in secrets)


def test_kernel_refuses_to_start_without_a_key(tmp_path):
    result = run("serve", "--graph", tmp_path / "kernel.db")
    assert result.returncode == 1
    assert "has no signing key" in result.stderr
    assert not (tmp_path / "kernel.db").exists()
    result = run("serve", "--graph", tmp_path / "kernel.db", "--keys", tmp_path / "none")
    assert (result.returncode, "there is no key file" in result.stderr) == (1, True)


def test_key_may_come_from_the_environment(tmp_path):
    with serving("--graph", tmp_path / "k.db", "--port", 0, log=tmp_path / "log", **{ENVIRONMENT: KEYS.to_json()}) as (
        _,
        url,
    ):
        assert httpx.get(f"{url}/health").json()["key"] == "k1"


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_key_file_that_others_may_read_is_refused(tmp_path):
    path = tmp_path / "keys"
    path.write_text(KEYS.to_json())
    path.chmod(0o640)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        SigningKeys.load(path)


SECRET = "c2VjcmV0LXNlY3JldA"


@pytest.mark.parametrize(
    "text",
    [
        "", SECRET, "[]", "{}", '{"keys": []}', '{"current": "a", "keys": []}',
        f'{{"current": "a", "keys": ["{SECRET}"]}}',
        f'{{"current": "a", "keys": [{{"id": "a", "algorithm": "ed25519", "secret": "{SECRET}"}}]}}',
        f'{{"current": "a", "keys": [{{"id": "a", "algorithm": "none", "secret": "{SECRET}"}}]}}',
        f'{{"current": "a", "keys": [{{"id": "a", "algorithm": "ed25519", "secret": "{SECRET}="}}]}}',
    ],
)  # fmt: skip
def test_malformed_keys_are_refused_without_telling_them(text):
    with pytest.raises(ConfigurationError) as caught:
        SigningKeys.from_json(text, "the file")
    chain, error = [], caught.value
    while error is not None:
        chain.append(repr(error) + str(error))
        error = error.__cause__
    assert SECRET not in "".join(chain)
    assert SECRET not in repr(KEYS)


def test_port_in_use_is_named(tmp_path):
    keys = tmp_path / "keys"
    run("new-key", "a", "--keys", keys)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        result = run("serve", "--graph", tmp_path / "k.db", "--keys", keys, "--port", listener.getsockname()[1])
    assert result.returncode == 1
    assert "can't listen on 127.0.0.1" in result.stderr


def test_keys_refuse_two_of_one_id():
    with pytest.raises(ConfigurationError, match="ids of their own"):
        SigningKeys(current="a", keys=(SigningKey.generate("a"), SigningKey.generate("a")))


@pytest.mark.parametrize("value", [0, -1, True, 1.5])
def test_limits_are_whole_numbers_of_at_least_one(value):
    with pytest.raises(ConfigurationError, match="body_bytes must be a whole number"):
        KernelLimits(body_bytes=value)
