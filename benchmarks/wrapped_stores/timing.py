"""CPU time of a question over LangChain's InMemoryVectorStore: MiniLM's evidence beside the static embedder's.

    python -m benchmarks.wrapped_stores.timing

The three settings take turns. For the first half of the questions each has caches of its own that are empty; for the
second half, the vectors of all passages are cached, and the questions are new.
"""

import json
import time
import warnings
from collections import defaultdict
from statistics import fmean

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from benchmarks.wrapped_stores.measure import HERE
from langchain_meve import MeVeEmbeddings, MeVeRetriever

BASE = "static"


def main() -> None:
    """Measure, and print milliseconds and ratios."""
    warnings.simplefilter("ignore")
    questions = [each["question"] for each in json.loads((HERE / "questions.json").read_text("utf-8"))]
    documents = [Document(file.read_text("utf-8")) for file in sorted((HERE / "notes").iterdir())]
    chunks = RecursiveCharacterTextSplitter(chunk_size=600, chunk_overlap=50).split_documents(documents)
    own, other = InMemoryVectorStore(MeVeEmbeddings()), InMemoryVectorStore(MeVeEmbeddings("static"))
    own.add_documents(chunks)
    other.add_documents(chunks)
    settings = {
        BASE: (other, "static"),
        "MiniLM, embedded here": (other, None),
        "MiniLM, vectors of the store": (own, None),
    }

    def make() -> dict[str, MeVeRetriever]:
        return {n: MeVeRetriever.from_vectorstore(s, embedder=by) for n, (s, by) in settings.items()}

    for retriever in make().values():
        retriever.context("Is anybody there?")  # loads the models
    half = len(questions) // 2
    measured: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question in questions[:half]:
        for name, retriever in make().items():
            measured["nothing cached"][name].append(_time(retriever, question))
    kept = make()
    for retriever in kept.values():
        retriever.context(questions[0], candidates=len(chunks), exact=True)
    for question in questions[half:]:
        for name, retriever in kept.items():
            measured["passages known"][name].append(_time(retriever, question))
    print("| | " + " | ".join(settings) + " |\n|---|" + "---:|" * len(settings))
    for case, times in measured.items():
        base = fmean(times[BASE])
        print(f"| {case} | " + " | ".join(f"{fmean(t):.0f} ms, {fmean(t) / base:.2f}" for t in times.values()) + " |")


def _time(retriever: MeVeRetriever, question: str) -> float:
    """Return the milliseconds of CPU time that a question takes."""
    start = time.process_time()
    retriever.context(question)
    return (time.process_time() - start) * 1000


if __name__ == "__main__":
    main()
