import json
import os
import subprocess
import sys
from importlib.metadata import version


def test_info_tells_counts_models_sizes_and_settings(meve, index):
    """As a table, and as JSON."""
    shown = meve("info", index).stdout
    for words in ("passages", "embedder.name", "config.threshold", "bytes.total", "tokens.name"):
        assert words in shown
    data = json.loads(meve("info", index, "--json").stdout)
    assert (data["passages"], data["files"], data["dense"]) == (4, 3, {"kind": "flat"})
    assert data["bytes"]["total"] == sum(size for name, size in data["bytes"].items() if name != "total")


def test_info_loads_no_model(index):
    """Nor the libraries that run one."""
    code = (
        "import sys; from meve.cli.app import app; app(['info', sys.argv[1]], standalone_mode=False); "
        "sys.exit(','.join({'torch', 'transformers', 'sentence_transformers', 'faiss'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(index)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_version(meve):
    """As the distribution says."""
    assert meve("--version").stdout == f"meve {version('meve')}\n"


def test_no_colour_codes_go_into_a_pipe(index):
    """Nor when colours are forced and NO_COLOR is set."""
    for extra in ({}, {"NO_COLOR": "1", "FORCE_COLOR": ""}):
        command = [sys.executable, "-m", "meve.cli", "info", str(index)]
        done = subprocess.run(command, capture_output=True, env={**os.environ, **extra})
        assert b"\x1b" not in done.stdout
        assert done.returncode == 0
