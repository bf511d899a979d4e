"""What a plain `pip install meve` can do, run by try_wheel.py in an environment with nothing else."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import meve
from meve.errors import MissingExtraError
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

for heavy in ("torch", "sentence_transformers", "sklearn", "rank_bm25", "pytest"):
    assert importlib.util.find_spec(heavy) is None, f"{heavy} is not part of a plain install"
assert "site-packages" in meve.__file__, meve.__file__
assert (Path(meve.__file__).parent / "py.typed").exists(), "types must travel"

parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
retriever = meve.Retriever.from_texts(["The sky is blue.", "Grass is green."], **parts)
with tempfile.TemporaryDirectory() as folder:
    retriever.save(Path(folder) / "index")
    again = meve.Retriever.load(Path(folder) / "index", **parts)
    assert again.retrieve("blue sky").text == "The sky is blue."
    again.retrieve("blue sky", lexical="bm25")

    static = meve.Retriever.from_texts(["The sky is blue.", "Grass is green."], **{**parts, "embedder": "static"})
    assert static.retrieve("sky").passages[0].passage.text == "The sky is blue.", "the embedder that ships must work"

    for needs, extra in (({"embedder": None}, "offline"), ({"embedder": "some/model"}, "models")):
        try:
            meve.Retriever.from_texts(["text"], **{**parts, **needs})
        except MissingExtraError as error:
            assert f"pip install 'meve[{extra}]'" in str(error), error
        else:
            raise AssertionError(f"{needs} must say which extra it needs")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        """The installed command."""
        return subprocess.run(
            [str(Path(sys.executable).parent / "meve"), *arguments], capture_output=True, text=True, check=False
        )

    assert run("--version").stdout.split()[-1] == meve.__version__
    info = run("info", str(Path(folder) / "index"))
    assert info.returncode == 0, info.stderr
    (Path(folder) / "a.txt").write_text("text", encoding="utf-8")
    missing = run("index", str(Path(folder) / "a.txt"), "--to", str(Path(folder) / "other"))
    assert missing.returncode == 1, missing
    assert "meve[offline]" in " ".join(missing.stderr.split()), missing.stderr
sys.stdout.write("a plain install works\n")
