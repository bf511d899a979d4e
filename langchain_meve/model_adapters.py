"""Adapters that use LangChain's embeddings, cross-encoders and rerankers as MeVe's embedder and verifier."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_meve.embeddings import MeVeEmbeddings
from meve._formulas import normalize
from meve._vectors import validate_vectors
from meve.components.verifiers.own import UNCALIBRATED, Scale, ScoreVerifier
from meve.errors import ConfigurationError, ModelError, PassageError, QueryError, wrap_errors
from meve.integrations._reranker_limits import lift_limits
from meve.types import FloatArray, Similarity


class LangChainEmbedder:
    """Uses any LangChain embeddings as an embedder, with cosine similarity.

    Args:
        embeddings: LangChain embeddings, which may truncate long texts.
        name: the embedder's name in traces; None for that of MeVe's embedder in `MeVeEmbeddings`, whose vectors count
            as evidence in the verdict, else for the class name.
    """

    similarity: Similarity = "cosine"

    def __init__(self, embeddings: Embeddings, *, name: str | None = None) -> None:
        self.embeddings = embeddings
        own = embeddings.embedder.name if isinstance(embeddings, MeVeEmbeddings) else type(embeddings).__name__
        self.name = name or own

    @cached_property
    def dimension(self) -> int:
        """The length of a vector, measured by a first embedding."""
        with wrap_errors(ModelError, f"embedding with {self.name}"):
            return len(self.embeddings.embed_query("dimension"))

    def embed_query(self, text: str) -> FloatArray:
        """Return the unit vector of a query, shape (d,)."""
        if not isinstance(text, str):
            raise QueryError(f"query must be a string, got {type(text).__name__}")
        with wrap_errors(ModelError, f"embedding with {self.name}"):
            return normalize(validate_vectors(self.embeddings.embed_query(text), (self.dimension,), self.name))

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the unit vectors of passages, shape (n, d), in the order given."""
        _check_texts(texts)
        if not len(texts):
            return np.zeros((0, self.dimension), dtype=np.float32)
        with wrap_errors(ModelError, f"embedding with {self.name}"):
            vectors = self.embeddings.embed_documents(list(texts))
            return normalize(validate_vectors(vectors, (len(texts), self.dimension), self.name))


class LangChainVerifier(ScoreVerifier):
    """Uses a LangChain cross-encoder as a verifier.

    Args:
        cross_encoder: scores query and passage; it may truncate long passages.
        scale: the scale of its scores, which depends on the model: `logits` (mapped by the sigmoid), `probabilities`
            (used as they are), or a calibration, as `meve.calibration.fitting.calibrate` fits one.
        name: the verifier's name in traces; None for the class name.

    Raises:
        ConfigurationError: an unknown scale.
    """

    def __init__(self, cross_encoder: BaseCrossEncoder, *, scale: Scale, name: str | None = None) -> None:
        self.cross_encoder = cross_encoder
        super().__init__(self._score_pairs, name=name or type(cross_encoder).__name__, scale=scale)

    def _score_pairs(self, query: str, passages: list[str]) -> Any:
        return self.cross_encoder.score([(query, passage) for passage in passages])


class LangChainReranker(ScoreVerifier):
    """Uses a LangChain compressor that sets `relevance_score`, as rerankers do, as a verifier.

    A limit of the compressor (`top_n`, `top_k`) is lifted. A document that it leaves out counts as rejected, with the
    probability 0.

    Args:
        compressor: a reranker such as `CohereRerank`, `JinaRerank`, `VoyageAIRerank` or `FlashrankRerank`; other
            objects share it.
        scale: the scale of its scores; on the scale of logits, no document may be left out.
        name: the verifier's name in traces; None for the model's, else the class name.
    """

    def __init__(
        self, compressor: BaseDocumentCompressor, *, scale: Scale = "probabilities", name: str | None = None
    ) -> None:
        self.compressor = compressor
        given = name or getattr(compressor, "model", None) or getattr(compressor, "model_name", None)
        super().__init__(
            self._compress, name=given if isinstance(given, str) else type(compressor).__name__, scale=scale
        )

    def _compress(self, query: str, passages: list[str]) -> list[float]:
        documents = [Document(text, metadata={_PLACE: n}) for n, text in enumerate(passages)]
        unlimited = lift_limits(self.compressor, len(passages))
        scores: dict[int, float] = {}
        for document in unlimited.compress_documents(documents, query):
            found = [value for name, value in document.metadata.items() if name.endswith("relevance_score")]
            if not found or _PLACE not in document.metadata:
                raise ModelError(
                    f"{self.name} must return documents with their metadata and a relevance_score, got "
                    f"{sorted(document.metadata)}: a cross-encoder fits LangChainVerifier, others fit no verifier"
                )
            scores[document.metadata[_PLACE]] = float(found[0])
        if len(scores) < len(passages) and self.calibration != UNCALIBRATED:
            raise ModelError(f"{self.name} must score each of {len(passages)} documents, got {len(scores)}")
        return [scores.get(n, 0.0) for n in range(len(passages))]


_PLACE = "meve_place"
"""The metadata key of a document's position among the given ones."""


_UNSEEN: RunnableConfig = {"tags": ["nostream"]}
"""Keeps LangGraph from streaming what the model says here to the user, who may never get to see it."""


def complete_with(model: Runnable[Any, Any]) -> Callable[[str], str]:
    """Return a function that sends a prompt to a chat model and returns its text, as `LlmExtractor` takes it.

    A graph doesn't stream the text.

    Args:
        model: a chat model, or another runnable that takes a prompt and returns a message or a text.

    Raises:
        ConfigurationError: it is no runnable.
    """
    if not isinstance(model, Runnable):
        raise ConfigurationError(f"model must be a LangChain chat model, got {model!r:.60}")

    def complete(prompt: str) -> str:
        answer = model.invoke(prompt, _UNSEEN)
        return answer if isinstance(answer, str) else str(answer.text)

    return complete


def _check_texts(texts: object) -> None:
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(t, str) for t in texts):
        raise PassageError("passages must be a list of strings: put a single one in a list")
