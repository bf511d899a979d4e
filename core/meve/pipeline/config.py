"""Every setting of a retrieval, frozen and checked, in one place. Phases get theirs by name."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Literal, Self, TypedDict, Unpack, get_args

from meve.errors import ConfigurationError
from meve.types import LexicalKind

Mode = Literal["full", "no_verification", "no_fallback", "standard_rag", "no_rag"]
"""The five modes of the MeVe paper: `full` runs every phase, the others leave some out, to see what they are worth."""

PHASES: Mapping[Mode, tuple[str, ...]] = {
    "full": ("retrieve", "verify", "follow", "fallback", "prioritize", "condense", "budget"),
    "no_verification": ("retrieve", "fallback", "prioritize", "budget"),
    "no_fallback": ("retrieve", "verify", "follow", "prioritize", "condense", "budget"),
    "standard_rag": ("retrieve", "budget"),
    "no_rag": ("budget",),
}
"""The phases that each mode runs; `follow` and `condense` only where `hops` and `packing` ask for them."""

Sources = Literal["dense", "lexical", "hybrid"]
"""Where candidates come from: vectors, words, or both, as many from each."""

Packing = Literal["passages", "sentences"]
"""What is packed: passages as they are, or of each its title and the sentences that carry evidence."""


class Overrides(TypedDict, total=False):
    """What `retrieve` takes by name, to override the retriever's configuration for one call."""

    candidates: int
    sources: Sources
    limit: int | None
    threshold: float
    exact: bool
    hops: int
    evidence: int
    evidence_words: int
    follow_k: int
    min_verified: int
    fallback_k: int
    fallback_floor: float
    redundancy: float
    max_tokens: int
    packing: Packing
    sentence_threshold: float
    sufficiency_threshold: float | None
    mode: Mode
    separator: str
    citations: bool
    tokens: str | None
    lexical: LexicalKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverConfig:
    """How a retrieval decides. Checked when made; each value can be overridden for one call, by name.

    Raises:
        ConfigurationError: a value of the wrong type or out of range; the message says which, and what would do.

    Source: MeVe (Ottem 2025), appendix A.4, with the corrections that `docs/architecture.md` lists.

    >>> RetrieverConfig(threshold=0.7).override(max_tokens=256).max_tokens
    256
    """

    candidates: int = 20
    """Phase 1: how many candidates a source may bring (the paper's k)."""
    sources: Sources = "hybrid"
    """Phase 1: candidates by their vectors, by their words, or by both, which are all verified. Where words were asked
    already, the fallback brings back the best of those that were turned down."""
    limit: int | None = None
    """Phase 5: how many passages the context may hold; None for as many as the budget takes."""
    threshold: float = 0.5
    """Phase 2: the probability from which on a candidate is verified (τ), in [0, 1]."""
    exact: bool = True
    """Phase 2: score every candidate. False leaves out copies of one that is verified, and, where a prior is at hand,
    those that stand no chance; the trace names them."""
    hops: int = 1
    """Phase 2: with 2 or more, the sources are asked again beside what is verified, so many times in all, to complete
    it: for questions that need several passages together."""
    evidence: int = 2
    """Phase 2: in a further hop, how many verified passages to go on from, the best first, each by itself."""
    evidence_words: int = 60
    """Phase 2: in a further hop, how many words of such a passage stand beside the question."""
    follow_k: int = 10
    """Phase 2: in a further hop, how many candidates a source may bring for each such passage."""
    min_verified: int = 3
    """Phase 3: with fewer verified candidates than this, the fallback runs (N_min)."""
    fallback_k: int = 5
    """Phase 3: how many candidates the fallback may bring."""
    fallback_floor: float = 0.1
    """Phase 3: the probability that a fallback candidate must reach to be let in, in [0, 1]; 0 lets all in."""
    redundancy: float = 0.85
    """Phase 4: drop a candidate whose cosine with a better one exceeds this (θ), in [0, 1]; 1 drops none."""
    max_tokens: int = 512
    """Phase 5: the most tokens that the context's text may have (T_max)."""
    packing: Packing = "passages"
    """Phase 5: pack whole passages, or of each its title and the sentences that carry evidence."""
    sentence_threshold: float = 0.5
    """Phase 5: the probability from which on a sentence stays, in [0, 1]; a passage's best one stays in any case."""
    sufficiency_threshold: float | None = None
    """From which estimate on a context is called sufficient, in [0, 1]; None for the estimator's own."""
    mode: Mode = "full"
    separator: str = "\n\n"
    """Phase 5: stands between passages; its tokens count."""
    citations: bool = False
    """Phase 5: put [1], [2], … before the passages; their tokens count."""
    tokens: str | None = None
    """Phase 5: count with this tokenizer (a tiktoken encoding, say) and not with the retriever's own."""
    lexical: LexicalKind | None = None
    """Phases 1 and 3: ask this keyword index, the inverted `bm25` or the paper's `rank_bm25`, and no other."""

    def __post_init__(self) -> None:
        for name, least in (
            ("candidates", 1),
            ("limit", 1),
            ("min_verified", 0),
            ("fallback_k", 0),
            ("max_tokens", 1),
            ("hops", 1),
            ("evidence", 1),
            ("evidence_words", 1),
            ("follow_k", 1),
        ):
            if name != "limit" or self.limit is not None:
                object.__setattr__(self, name, _integer(name, getattr(self, name), least))
        for name in ("threshold", "sentence_threshold", "fallback_floor", "redundancy"):
            object.__setattr__(self, name, _fraction(name, getattr(self, name)))
        if self.sufficiency_threshold is not None:
            value = _fraction("sufficiency_threshold", self.sufficiency_threshold)
            object.__setattr__(self, "sufficiency_threshold", value)
        _choice("mode", self.mode, get_args(Mode))
        _choice("sources", self.sources, get_args(Sources))
        _choice("packing", self.packing, get_args(Packing))
        _kind("separator", self.separator, str, "text")
        _kind("citations", self.citations, bool, "True or False")
        _kind("exact", self.exact, bool, "True or False")
        if self.tokens is not None:
            _kind("tokens", self.tokens, str, "a tokenizer's name, or None for the retriever's own")
        if self.lexical is not None:
            _choice("lexical", self.lexical, get_args(LexicalKind))

    @classmethod
    def paper(cls) -> Self:
        """The published setting, whatever the defaults become: k 20, τ 0.5, N_min 3, θ 0.85, T_max 512.

        Budgets are counted in gpt2 tokens, the fallback is rank_bm25 over lower-cased whitespace tokens and lets all
        of its hits in. The models are parts, not settings: embedder `sentence-transformers/multi-qa-mpnet-base-dot-v1`,
        verifier `cross-encoder/ms-marco-MiniLM-L-6-v2`.

        Source: MeVe (Ottem 2025), appendices A.2 and A.4. How many hits the fallback adds is not published; 5 here.
        """
        return cls(
            candidates=20,
            sources="dense",
            limit=None,
            threshold=0.5,
            exact=True,
            hops=1,
            min_verified=3,
            fallback_k=5,
            fallback_floor=0.0,
            redundancy=0.85,
            max_tokens=512,
            packing="passages",
            mode="full",
            separator="\n\n",
            citations=False,
            tokens="gpt2",
            lexical="rank_bm25",
        )

    def override(self, **changes: Unpack[Overrides]) -> Self:
        """A copy with some values changed.

        Raises:
            ConfigurationError: an unknown name, or a value out of range.
        """
        if not changes:
            return self
        check_option_names(changes)
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-ready; `from_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            ConfigurationError: an unknown name, or a value out of range.
        """
        check_option_names(data)
        return cls(**data)


def validate_config(config: object) -> RetrieverConfig:
    """The configuration that was given, if it is one; the defaults for None.

    Raises:
        ConfigurationError: something else.
    """
    if config is None:
        return RetrieverConfig()
    if not isinstance(config, RetrieverConfig):
        raise ConfigurationError(f"config is {config!r:.80}: give a RetrieverConfig, or RetrieverConfig.from_dict(…)")
    return config


def check_option_names(names: Iterable[str], known: Collection[str] = (), of: str = "") -> None:
    """Refuse options that don't exist, and say which one was probably meant.

    Args:
        names: those that are given.
        known: those that there are; `RetrieverConfig`'s if empty.
        of: what they are options of, for the message.

    Raises:
        ConfigurationError: a name that isn't known.

    >>> check_option_names(["limt"], ["limit", "tags"], "search")
    Traceback (most recent call last):
    meve.errors.ConfigurationError: unknown option 'limt' of search: did you mean 'limit'?
    """
    known = known or [f.name for f in fields(RetrieverConfig)]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise ConfigurationError(f"unknown option {name!r}{of and f' of {of}'}: {hint}")


def _integer(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ConfigurationError(f"{name} is {value!r}: give a whole number of at least {least}")
    return int(value)


def _fraction(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ConfigurationError(f"{name} is {value!r}: give a number from 0 to 1")
    return float(value)


def _choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigurationError(f"{name} is {value!r}: choose one of {', '.join(choices)}")


def _kind(name: str, value: object, kind: type, wanted: str) -> None:
    if not isinstance(value, kind):
        raise ConfigurationError(f"{name} is {value!r}: give {wanted}")
