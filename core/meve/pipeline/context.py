"""What a retrieval hands over: the text for the prompt, and everything that explains it."""

from dataclasses import dataclass
from typing import Any

from meve.pipeline.trace import Trace
from meve.types import ContextPassage


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Text for a prompt, with its account."""

    query: str
    text: str
    """The passages, best first, joined; empty when nothing qualified."""
    tokens: int
    """Of the whole text, separators and citations included; never above `max_tokens`."""
    max_tokens: int
    sufficient: bool
    """Whether it can carry an answer: by the estimate, or where there is none, whether something verified stands in it.
    Where False, an application does better to abstain than to answer."""
    sufficiency: float | None
    """The estimated probability of that, in [0, 1]; None where no estimator was at hand."""
    passages: tuple[ContextPassage, ...]
    trace: Trace

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data: query, text, passages and trace."""
        return {
            "query": self.query,
            "text": self.text,
            "tokens": self.tokens,
            "max_tokens": self.max_tokens,
            "sufficient": self.sufficient,
            "sufficiency": self.sufficiency,
            "passages": [
                {
                    "id": p.passage.id,
                    "title": p.passage.title,
                    "text": p.passage.text,
                    "metadata": dict(p.passage.metadata),
                    "score": p.score,
                    "verified": p.verified,
                    "origin": p.origin,
                    "tokens": p.tokens,
                }
                for p in self.passages
            ],
            "trace": self.trace.to_dict(),
        }
