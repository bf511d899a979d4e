"""Define the result of a retrieval: the text for the prompt, its passages and its trace."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

from meve.pipeline.trace import Trace
from meve.types import ContextPassage


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The text for a prompt, with its passages and its trace."""

    query: str
    text: str
    """The joined passages: verified ones first, best first; empty if none qualified."""
    tokens: int
    """The tokens of the whole text, separators and citations included; at most `max_tokens`."""
    max_tokens: int
    sufficient: bool
    """Whether the context suffices for an answer, by the estimate; without one, whether a passage is verified.
    If False, tell the model that the answer may be missing."""
    sufficiency: float | None
    """The estimated probability that the context suffices, in [0, 1]; None without an estimator."""
    passages: tuple[ContextPassage, ...]
    trace: Trace
    corrections: Mapping[str, str] = field(default_factory=dict)
    """The misspelt words of the query, each with the word that was read in its place."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data: query, text, passages and trace."""
        data = {each.name: getattr(self, each.name) for each in fields(Context)}
        data["passages"] = [
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
        ]
        data["trace"] = self.trace.to_dict()
        data["corrections"] = dict(self.corrections)
        return data

    def to_html(self) -> str:
        """Return question, text and the picture of the trace as HTML; passages are named by title or beginning.

        Unlike the trace's picture, it shows text of the passages. Those of one title are named by their beginning.
        """
        titles = Counter(p.passage.title for p in self.passages)
        labels = {
            p.passage.id: p.passage.title if p.passage.title and titles[p.passage.title] == 1 else p.passage.text
            for p in self.passages
        }
        return (
            f"<p><b>{escape(self.query)}</b>{escape(self._describe_corrections())}</p>"
            f'<pre style="white-space: pre-wrap">{escape(self.text)}</pre>{self.trace.to_html(labels=labels)}'
        )

    def _describe_corrections(self) -> str:
        read = ", ".join(f"{word} as {other}" for word, other in self.corrections.items())
        return f" (read {read})" if read else ""

    def _repr_html_(self) -> str:
        """Show question, text and trace in a notebook."""
        return self.to_html()
