"""An adapter that uses a LlamaIndex reranker as a verifier."""

from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from meve.components.verifiers.own import UNCALIBRATED, Scale, ScoreVerifier
from meve.errors import ModelError
from meve.integrations._reranker_limits import lift_limits


class LlamaIndexReranker(ScoreVerifier):
    """Uses a LlamaIndex reranker as a verifier.

    A limit of the reranker (`top_n`, `top_k`) is lifted. A node that it leaves out counts as rejected, with the
    probability 0.

    Args:
        reranker: a postprocessor that scores nodes, such as `SentenceTransformerRerank` or `CohereRerank`.
        scale: the scale of its scores; on the scale of logits, no node may be left out.
        name: the verifier's name in traces; None for the model's, else the class name.
    """

    def __init__(
        self, reranker: BaseNodePostprocessor, *, scale: Scale = "probabilities", name: str | None = None
    ) -> None:
        self.reranker = reranker
        given: Any = name or getattr(reranker, "model", None) or getattr(reranker, "model_name", None)
        super().__init__(self._rerank, name=given if isinstance(given, str) else type(reranker).__name__, scale=scale)

    def _rerank(self, query: str, passages: list[str]) -> list[float]:
        nodes = [NodeWithScore(node=TextNode(id_=str(n), text=text)) for n, text in enumerate(passages)]
        unlimited = lift_limits(self.reranker, len(passages))
        scores: dict[str, float] = {}
        for each in unlimited.postprocess_nodes(nodes, query_bundle=QueryBundle(query)):
            if each.score is None:
                raise ModelError(f"{self.name} must score nodes: a postprocessor that only filters is no verifier")
            scores[each.node.node_id] = float(each.score)
        if len(scores) < len(passages) and self.calibration != UNCALIBRATED:
            raise ModelError(f"{self.name} must score each of {len(passages)} nodes, got {len(scores)}")
        return [scores.get(str(n), 0.0) for n in range(len(passages))]
