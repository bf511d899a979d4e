"""Ingest a folder into a collection in small steps: python ingesting_child.py FOLDER URL."""

import sys

from meve import Retriever
from meve.ingest import folder, ingest
from tests.fake_components import make_components

if __name__ == "__main__":
    folder.BATCH = 10
    retriever = Retriever.over(sys.argv[2], collection="docs", **make_components())
    update = retriever.update

    def tell(**changes):
        update(**changes)
        sys.stdout.write("step\n")
        sys.stdout.flush()

    retriever.update = tell
    ingest(sys.argv[1], retriever)
