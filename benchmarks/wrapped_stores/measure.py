"""MeVe over stores of LangChain and LlamaIndex, against the stores' own search: small notes and questions about them.

    python -m benchmarks.wrapped_stores.measure

The notes of a rowing club and the questions stand beside this file. Some questions have no answer in the notes. A
question counts as answered by the context if each of its gold texts stands in some passage, and the first passage as
right if it holds one of them. `--notes` and `--questions` take others, in the same form.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import EmbeddingsFilter
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter

import langchain_meve
import llama_index_meve
from meve import load_verifier
from meve.components.tokenizers import resolve_tokens

HERE = Path(__file__).parent
BUDGET = 512
"""Tokens of a context, where MeVe makes it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The passages that a system returns for a question."""

    texts: list[str]
    verified: int | None = None
    """The number of verified passages; None for a system that verifies nothing."""
    sufficient: bool | None = None


Retrieve: TypeAlias = Callable[[str], Found]


def main() -> None:
    """Measure all systems and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=Path, default=HERE / "notes", help="a folder of text files")
    parser.add_argument("--questions", type=Path, default=HERE / "questions.json")
    parser.add_argument("--explain", action="store_true", help="list each question that a system gets wrong")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    questions = json.loads(arguments.questions.read_text("utf-8"))
    files = {str(f.relative_to(arguments.notes)): f.read_text("utf-8") for f in sorted(arguments.notes.rglob("*.*"))}
    answerable = sum(bool(each["gold"]) for each in questions)
    print(f"{len(files)} notes, {answerable} questions with an answer, {len(questions) - answerable} without\n")
    print(
        "| system | answer in the context | first passage right | nothing verified, with / without an answer | not "
        "sufficient, with / without | tokens |\n|---|---|---|---|---|---|"
    )
    for name, retrieve in {**langchain_systems(files), **llama_index_systems(files)}.items():
        print(
            format_row(name, questions, [retrieve(each["question"]) for each in questions], arguments.explain),
            flush=True,
        )


def langchain_systems(files: dict[str, str]) -> dict[str, Retrieve]:
    """Return the systems over LangChain's InMemoryVectorStore."""
    documents = [Document(text, metadata={"source": name}) for name, text in files.items()]
    chunks = RecursiveCharacterTextSplitter(chunk_size=600, chunk_overlap=50).split_documents(documents)
    embeddings = langchain_meve.MeVeEmbeddings()
    store = InMemoryVectorStore(embeddings)
    store.add_documents(chunks)
    near = store.as_retriever(search_kwargs={"k": 10})
    verifier = load_verifier()

    def compress(compressor: Any) -> Retrieve:
        retriever = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=near)
        return lambda question: from_documents(retriever.invoke(question))

    def over_store(**options: Any) -> Retrieve:
        own = langchain_meve.MeVeRetriever.from_vectorstore(store, verifier=verifier, max_tokens=BUDGET, **options)
        return lambda question: from_documents(own.invoke(question))

    def compressor(**options: Any) -> Retrieve:
        return compress(langchain_meve.MeVeCompressor.make(verifier=verifier, max_tokens=BUDGET, **options))

    own = langchain_meve.MeVeRetriever.from_documents(chunks, verifier=verifier, max_tokens=BUDGET)
    return {
        "LangChain: the store's five nearest": lambda q: from_documents(store.similarity_search(q, k=5)),
        "`EmbeddingsFilter`, cosine 0.3, of ten": compress(
            EmbeddingsFilter(embeddings=embeddings, similarity_threshold=0.3)
        ),
        "`MeVeCompressor`, of ten": compressor(),
        "`MeVeCompressor`, of ten, `verified_only`": compressor(when_insufficient="verified_only"),
        "`MeVeRetriever.from_vectorstore`": over_store(),
        "`from_vectorstore`, `verified_only`": over_store(when_insufficient="verified_only"),
        '`from_vectorstore`, `embedder="static"`': over_store(embedder="static"),
        "`MeVeRetriever.from_documents`": lambda q: from_documents(own.invoke(q)),
    }


def llama_index_systems(files: dict[str, str]) -> dict[str, Retrieve]:
    """Return the systems over LlamaIndex's SimpleVectorStore."""
    documents = [LlamaDocument(text=text, metadata={"source": name}) for name, text in files.items()]
    index = VectorStoreIndex.from_documents(
        documents,
        embed_model=llama_index_meve.MeVeEmbedding(),
        transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=20)],
    )
    verifier = load_verifier()

    def over_index(**options: Any) -> Retrieve:
        own = llama_index_meve.MeVeRetriever.from_index(index, verifier=verifier, **options)

        def retrieve(question: str) -> Found:
            context = own.context(question)
            texts = [each.node.get_content() for each in llama_index_meve.retriever.context_to_nodes(context)]
            return Found(texts, sum(p.verified for p in context.passages), context.sufficient)

        return retrieve

    def postprocessed(question: str) -> Found:
        nodes = index.as_retriever(similarity_top_k=10).retrieve(question)
        left = postprocessor.postprocess_nodes(nodes, query_str=question)
        return Found([n.node.get_content() for n in left], sum(n.node.metadata["meve_verified"] for n in left))

    postprocessor = llama_index_meve.MeVePostprocessor.make(verifier=verifier, max_tokens=BUDGET)
    stock = index.as_retriever(similarity_top_k=5)
    return {
        "LlamaIndex: the index's five nearest": lambda q: Found([n.node.get_content() for n in stock.retrieve(q)]),
        "`MeVePostprocessor`, of ten": postprocessed,
        "`MeVeRetriever.from_index`": over_index(),
        "`from_index`, `verified_only`": over_index(when_insufficient="verified_only"),
        '`from_index`, `embedder="static"`': over_index(embedder="static"),
    }


def from_documents(documents: Sequence[Document]) -> Found:
    """Return what a LangChain retriever gave."""
    context = getattr(documents, "context", None)
    marks = [d.metadata["meve_verified"] for d in documents if "meve_verified" in d.metadata]
    return Found(
        [d.page_content for d in documents],
        sum(marks) if marks or context else None,
        context.sufficient if context else None,
    )


def format_row(name: str, questions: Sequence[Any], found: Sequence[Found], explain: bool) -> str:
    """Return a row of the table, and below it, if asked, the questions that went wrong."""
    counter = resolve_tokens(None)
    pairs = list(zip(questions, found, strict=True))
    with_answer = [(q, f) for q, f in pairs if q["gold"]]
    without = [f for q, f in pairs if not q["gold"]]
    missed = [q["question"] for q, f in with_answer if not all(any(g in t for t in f.texts) for g in q["gold"])]
    wrong = [q["question"] for q, f in with_answer if not any(g in t for g in q["gold"] for t in f.texts[:1])]
    tokens = sum(counter.count(text) for f in found for text in f.texts) / len(found)

    def both(attribute: str) -> str:
        of = [[getattr(f, attribute) for f in group] for group in ([f for _, f in with_answer], without)]
        return (
            ""
            if all(value is None for value in of[0])
            else " / ".join(str(sum(not value for value in each)) for each in of)
        )

    cells = [name, len(with_answer) - len(missed), len(with_answer) - len(wrong)]
    row = f"| {' | '.join(map(str, [*cells, both('verified'), both('sufficient'), round(tokens)]))} |"
    return f"{row}\n  missed: {missed}\n  wrong first: {wrong}" if explain else row


if __name__ == "__main__":
    main()
