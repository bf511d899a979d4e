"""Add passages to a collection until killed: python adding_child.py URL COLLECTION NUMBER."""

import sys

from meve import Passage, Retriever
from tests.fake_components import make_components

if __name__ == "__main__":
    url, collection, number = sys.argv[1:]
    retriever = Retriever.over(url, collection=collection, **make_components())
    for turn in range(10_000):
        ids = [f"{number}-{turn}-{n}" for n in range(5)]
        retriever.update(
            add=[Passage(id=i, text=f"shared words of {i}") for i in ids],
            remove=[f"{number}-{turn - 1}-{n}" for n in range(3)] if turn else [],
        )
        sys.stdout.write(f"{turn}\n")
        sys.stdout.flush()
