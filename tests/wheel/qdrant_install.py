"""Test what `pip install 'meve[qdrant]'` provides, in an environment with nothing else (see try_wheel.py)."""

import sys

from install_checks import assert_not_installed

import meve
from meve import Passage, Retriever

assert "site-packages" in meve.__file__, meve.__file__
assert_not_installed("torch", "pytest", "psycopg", "langchain_core")
retriever = Retriever.over("qdrant://:memory:", collection="beds")
retriever.add([Passage(id="sun", text="Tomatoes want six to eight hours of sun a day.", metadata={"lang": "en"})])
assert retriever.retrieve("How much sun do tomatoes want?", where={"lang": "en"}).sufficient
retriever.close()
sys.stdout.write("an install with the qdrant extra works\n")
