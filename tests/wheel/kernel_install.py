"""Test what `pip install 'meve[kernel]'` provides, in an environment with nothing else (see try_wheel.py)."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from install_checks import assert_not_installed

import meve
from meve.conversation import Conversation, PlacedTurn
from meve.errors import MissingExtraError
from meve.service.kernel import GraphKernel, KernelAuthority, SigningKey, SigningKeys, read_verifying_keys

assert "site-packages" in meve.__file__, meve.__file__
assert_not_installed("torch", "sentence_transformers", "pytest", "psycopg")
MEVE = [sys.executable, "-c", "from meve.cli import main; main()"]  # the script lies in the environment beside
TALK = [PlacedTurn(id="1", text="The login fails."), PlacedTurn(id="2", text="Since when?", parents=("1",))]


def run(*arguments: str) -> str:
    """Run `meve kernel`, and return what it prints."""
    return subprocess.run([*MEVE, "kernel", *arguments], capture_output=True, text=True, check=True).stdout


with tempfile.TemporaryDirectory() as folder:
    keys, graph, public = f"{folder}/kernel.keys", f"{folder}/kernel.db", Path(folder, "kernel.pub.json")
    run("new-key", "a", "--keys", keys)
    public.write_text(run("public-keys", "--keys", keys), encoding="utf-8")
    bearer = run("grant", "app", "--tenant", "acme", "--may-add", "--graph", graph).strip()
    command = [*MEVE, "kernel", "serve", "--graph", graph, "--keys", keys, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().split()[2].rstrip(",")
        authority = KernelAuthority(
            url, bearer=bearer, tenant="acme", conversation="c", keys=read_verifying_keys(public), timeout=30
        )
        assert authority.add(TALK) == 2
        assert Conversation.from_messages(TALK, authority=authority).cut_slice("2").turns == ("1", "2")
        authority.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()
try:
    GraphKernel.open("postgresql://localhost/graph", SigningKeys(current="a", keys=(SigningKey.generate("a"),)))
except MissingExtraError as error:
    assert "pip install 'meve[postgres]'" in str(error), error
else:
    raise AssertionError("it must say which extra it needs")
sys.stdout.write("an install with the kernel extra works\n")
