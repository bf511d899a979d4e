"""Test what `pip install 'meve[serve]'` provides, in an environment with nothing else (see try_wheel.py)."""

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

from install_checks import assert_not_installed
from mcp import Client
from mcp.client.stdio import StdioServerParameters

import meve

assert "site-packages" in meve.__file__, meve.__file__
assert_not_installed("torch", "sentence_transformers", "pytest", "psycopg", "langchain_core", "llama_index")
MEVE = [sys.executable, "-c", "from meve.cli import main; main()", "serve"]
TEXT = "Anna waters the roses on Mondays."


async def remember(client: Client) -> None:
    """Remember a text, and recall it."""
    async with client:
        await client.call_tool("remember", {"text": TEXT})
        assert TEXT in (await client.call_tool("recall", {"query": "When are the roses watered?"})).content[0].text


def check_page(root: str) -> None:
    """Load the inspector, and all files that it names."""
    with urlopen(f"{root}inspector") as page:
        named = re.findall(r'(?:src|href)="(inspector/[^"]+)"', page.read().decode())
    assert len(named) == 3, named
    for name in named:
        with urlopen(root + name) as file:
            assert file.read(), name


with tempfile.TemporaryDirectory() as folder:
    options = ["--memory", str(Path(folder, "memory.db")), "--user", "anna"]
    asyncio.run(remember(Client(StdioServerParameters(command=MEVE[0], args=[*MEVE[1:], "--stdio", *options]))))
    process = subprocess.Popen([*MEVE, *options, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().split()[-1]
        asyncio.run(remember(Client(url)))
        check_page(url.removesuffix("mcp"))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.stdout.close()
sys.stdout.write("an install with the serve extra works\n")
