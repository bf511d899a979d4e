"""Define the settings of a retrieval and the modes that choose its phases."""

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import wraps
from numbers import Integral, Real
from typing import Any, Literal, Self, TypedDict, Unpack, get_args

from meve.errors import ConfigurationError, show
from meve.types import LexicalKind

Mode = Literal["full", "no_verification", "no_fallback", "standard_rag", "no_rag"]
"""The five modes of the MeVe paper: `full` runs every phase, the others are its ablations."""

PHASES: Mapping[Mode, tuple[str, ...]] = {
    "full": ("retrieve", "verify", "follow", "fallback", "prioritize", "condense", "budget"),
    "no_verification": ("retrieve", "fallback", "prioritize", "budget"),
    "no_fallback": ("retrieve", "verify", "follow", "prioritize", "condense", "budget"),
    "standard_rag": ("retrieve", "budget"),
    "no_rag": ("budget",),
}
"""The phases that each mode runs; `follow` and `condense` only where `hops` and `packing` ask for them."""

Sources = Literal["dense", "lexical", "hybrid"]
"""The sources of candidates: vectors, keywords, or both; both give as many candidates each."""

Packing = Literal["passages", "sentences"]
"""The unit of packing: whole passages, or the title and the evidence sentences of each."""

Duplicates = Literal["repeated", "similar"]
"""The duplicates among similar passages: only those that repeat the other's text, or all, as in the paper."""

WhenInsufficient = Literal["return", "verified_only", "abstain", "raise"]
"""What to do with a context that isn't sufficient: return it, without unverified passages or with them, return an empty
one, or raise an error."""


class Settings(TypedDict, total=False):
    """The settings that every door takes as keyword arguments, each as in `RetrieverConfig`."""

    candidates: int
    spelling: bool
    sources: Sources
    limit: int | None
    threshold: float
    exact: bool | None
    deadline: float | None
    hops: int
    evidence: int
    evidence_words: int
    follow_k: int
    min_verified: int
    fallback_k: int
    fallback_floor: float
    redundancy: float
    duplicates: Duplicates
    diversify: float
    fill: bool
    fill_below: float
    max_tokens: int
    packing: Packing
    sentence_threshold: float | None
    sufficiency_threshold: float | None
    when_insufficient: WhenInsufficient
    mode: Mode
    separator: str
    citations: bool


class Overrides(Settings, total=False):
    """The keyword arguments of `retrieve` that override the configuration for one call."""

    tokens: str | None
    lexical: LexicalKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverConfig:
    """The settings of a retrieval. Each can be overridden for one call, by name.

    Raises:
        ConfigurationError: an unknown name, or a value of the wrong type or out of range.

    Source: MeVe (Ottem 2025), appendix A.4, with the corrections that `docs/architecture.md` lists.

    >>> RetrieverConfig(threshold=0.7).override(max_tokens=256).max_tokens
    256
    """

    candidates: int = 20
    """Phase 1: the most candidates per source (the paper's k)."""
    spelling: bool = True
    """Before phase 1: correct misspelt words of an English question that neither the collection's keyword index nor
    English knows. `Context.corrections` names them."""
    sources: Sources = "hybrid"
    """Phase 1: search by vectors, by keywords, or by both. If keywords were searched, the fallback reconsiders the best
    rejected candidates instead of searching again."""
    limit: int | None = None
    """Phase 5: the most passages in the context; None for as many as the budget admits."""
    threshold: float = 0.5
    """Phase 2: the least probability of a verified candidate (τ), in [0, 1]."""
    exact: bool | None = None
    """Phase 2 and further hops: True scores every candidate. None skips those that a prior predicts to fail, if one
    fits the models in use. False also skips duplicates of verified candidates in phase 2 and, once verified ones fill
    the context, all but likely ones. The trace names what was skipped."""
    deadline: float | None = None
    """Phases 2 and 3, further hops and sentence packing: score the likeliest candidates first, and none once this many
    seconds have passed since the beginning of the retrieval. The first four are always scored, or the first alone if it
    is long. Above 0; None for no deadline.
    """
    hops: int = 1
    """Phase 2: the number of searches in all. From 2 on, the sources are searched again with the question and verified
    passages together: for questions that need several passages.
    """
    evidence: int = 2
    """Phase 2: the number of verified passages, best first, that each extend the query of a further hop."""
    evidence_words: int = 60
    """Phase 2: the number of words of such a passage that follow the question."""
    follow_k: int = 10
    """Phase 2: the most candidates per source and extended query of a further hop."""
    min_verified: int = 3
    """Phase 3: the fallback runs with fewer verified candidates than this (N_min); copies of one count once."""
    fallback_k: int = 5
    """Phase 3: the most candidates that the fallback adds, none of them a copy."""
    fallback_floor: float = 0.1
    """Phase 3: the least probability of a fallback candidate, in [0, 1]; 0 admits all."""
    redundancy: float = 0.85
    """Phase 4: a candidate whose cosine with a better one exceeds this (θ), in [0, 1], is similar; 1 drops none."""
    duplicates: Duplicates = "repeated"
    """Phase 4: drop a similar candidate if it only repeats the text of the better one (`repeated`), or in any case
    (`similar`). A passage repeats another if all of its sentences stand in it, word by word and in order. Of whole
    passages, one that repeats a better one takes its place where that doesn't fit into the budget."""
    diversify: float = 0.0
    """Phase 4: order verified passages, then others, so that each is also unlike those before it, with this weight in
    [0, 1] (maximal marginal relevance). It drops none; under a small budget or `limit`, fewer say much the same. 0
    orders by score."""
    fill: bool = True
    """Phase 5: fill the rest of the budget of an uncertain context with other candidates, marked as not verified: those
    with the highest scores first, or in the order of phase 1 beside four or more verified ones. So an uncertain
    verifier leaves out little that a plain search would return. Only in mode `full` with whole passages, and with
    `when_insufficient="return"`."""
    fill_below: float = 0.83
    """Phase 5: the estimate of sufficiency, in [0, 1], below which a context is uncertain. One with four or more
    verified passages is uncertain too: an answer that stands in several may stand in more. One that isn't sufficient is
    uncertain in any case; 0 leaves it at that."""
    max_tokens: int = 512
    """Phase 5: the most tokens of the context's text (T_max). Passages that exceed it are shortened to their best
    sentences; one of which no sentence fits is left out."""
    packing: Packing = "passages"
    """Phase 5: pack whole passages, or the title and the evidence sentences of each."""
    sentence_threshold: float | None = None
    """Phase 5: the least probability of a sentence, in [0, 1]; in a verified passage, the least share of that of its
    best one, since an answer may take several. If no sentence of a passage reaches it, a verified one stays whole, and
    of another one the best sentence stays. None for 0.3 where the verifier rates sentences while it reads
    their passage, and 0.5 where it reads each by itself."""
    sufficiency_threshold: float | None = None
    """The least estimate of a sufficient context, in [0, 1]; None for the estimator's own threshold."""
    when_insufficient: WhenInsufficient = "return"
    """What to do if the context isn't sufficient: `return` it with its unverified passages, each marked as such;
    `verified_only` leaves out all unverified passages, of a sufficient context too; `abstain` returns an empty context;
    `raise` raises `InsufficientContextError`. In modes without verification no context is sufficient and no passage
    verified."""
    mode: Mode = "full"
    """The phases that run. `full` runs all; `no_verification` takes passages of the fallback; `no_fallback` takes
    verified ones only; `standard_rag` fills the budget with candidates in the order of their cosines, whichever source
    found them; `no_rag` returns no passages. See `meve.evaluation.systems` for plain searches to compare with."""
    separator: str = "\n\n"
    """Phase 5: the text between passages; its tokens count."""
    citations: bool = False
    """Phase 5: put [1], [2], … before the passages; their tokens count."""
    tokens: str | None = None
    """Phase 5: the name of a tokenizer, such as a tiktoken encoding; None for the retriever's own."""
    lexical: LexicalKind | None = None
    """Phases 1 and 3: the keyword index, `bm25` or the paper's `rank_bm25`; None for the retriever's own."""

    def __post_init__(self) -> None:
        for name, least in _INTEGERS.items():
            if name != "limit" or self.limit is not None:
                object.__setattr__(self, name, _check_integer(name, getattr(self, name), least))
        for name in _PROBABILITIES:
            if name not in _OPTIONAL or getattr(self, name) is not None:
                object.__setattr__(self, name, _check_probability(name, getattr(self, name)))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            _check(name, value, value in choices, f"one of {', '.join(map(str, choices))}")
        _check("separator", self.separator, isinstance(self.separator, str), "a string")
        for name in ("citations", "fill", "spelling"):
            _check(name, getattr(self, name), isinstance(getattr(self, name), bool), "True or False")
        _check("exact", self.exact, isinstance(self.exact, bool | None), "True, False or None")
        if self.deadline is not None:
            object.__setattr__(self, "deadline", _check_seconds("deadline", self.deadline))
        _check("tokens", self.tokens, isinstance(self.tokens, str | None), "the name of a tokenizer, or None")

    @classmethod
    def paper(cls) -> Self:
        """Return the published settings: k 20, τ 0.5, N_min 3, θ 0.85, T_max 512.

        Budgets are counted in gpt2 tokens. The fallback is rank_bm25 over lower-cased whitespace tokens and admits all
        of its hits. The paper's models are no settings: embedder `sentence-transformers/multi-qa-mpnet-base-dot-v1`,
        verifier `cross-encoder/ms-marco-MiniLM-L-6-v2`.

        Source: MeVe (Ottem 2025), appendices A.2 and A.4. The number of fallback hits is not published; 5 here.
        """
        return cls(
            candidates=20,
            spelling=False,
            sources="dense",
            limit=None,
            threshold=0.5,
            exact=True,
            deadline=None,
            hops=1,
            min_verified=3,
            fallback_k=5,
            fallback_floor=0.0,
            redundancy=0.85,
            duplicates="similar",
            diversify=0.0,
            fill=False,
            fill_below=0.0,
            max_tokens=512,
            packing="passages",
            when_insufficient="return",
            mode="full",
            separator="\n\n",
            citations=False,
            tokens="gpt2",
            lexical="rank_bm25",
        )

    def override(self, **changes: Unpack[Overrides]) -> Self:
        """Return a copy with some values changed.

        Raises:
            ConfigurationError: an unknown name, or a value out of range.
        """
        return replace(self, **changes) if changes else self

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data; `from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            ConfigurationError: an unknown name, or a value out of range.
        """
        return cls(**data)


def _explain_unknown(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that names the nearest setting for an unknown one."""

    @wraps(init)
    def checked(self: RetrieverConfig, **settings: Unpack[Overrides]) -> None:
        check_option_names(settings)
        init(self, **settings)

    return checked


RetrieverConfig.__init__ = _explain_unknown(RetrieverConfig.__init__)  # type: ignore[method-assign]


def validate_config(config: object) -> RetrieverConfig:
    """Return the given configuration, or the defaults for None.

    Raises:
        ConfigurationError: anything else.
    """
    if config is None:
        return RetrieverConfig()
    if not isinstance(config, RetrieverConfig):
        raise ConfigurationError(
            f"config must be a RetrieverConfig, got {config!r:.80}: RetrieverConfig.from_dict reads a mapping"
        )
    return config


def check_option_names(names: Iterable[str], known: Collection[str] = (), of: str = "") -> None:
    """Check option names, and suggest the nearest valid one.

    Args:
        names: the given names.
        known: the valid names; those of `RetrieverConfig` if empty.
        of: the owner of these options, for the message.

    Raises:
        ConfigurationError: an unknown name; the message lists the valid ones.

    >>> check_option_names(["limt"], ["limit", "tags"], "search")
    Traceback (most recent call last):
    meve.errors.ConfigurationError: unknown option 'limt' of search: did you mean 'limit'? known: limit, tags
    """
    known = known or [f.name for f in fields(RetrieverConfig)]
    for name in names:
        if name not in known:
            near = find_nearest(str(name), known)
            hint = f"did you mean {near!r}? " if near else ""
            if name == "device" and "verifier" in known:
                hint = "give verifier=load_verifier(device=…) instead. "
            raise ConfigurationError(f"unknown option {name!r}{of and f' of {of}'}: {hint}known: {', '.join(known)}")


def check_keywords(function: Callable[..., Any], given: Collection[str], also: Iterable[str] = ()) -> None:
    """Check the names of keyword arguments before a function does any work with them.

    Args:
        function: its named parameters are valid, and the keys of a TypedDict that its `**options` unpack.
        given: the given names.
        also: further valid names.

    Raises:
        ConfigurationError: an unknown name; the message lists the valid ones.
    """
    if not given:
        return
    known: dict[str, None] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":  # of a class's `__init__`
            continue
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            known[parameter.name] = None
            continue
        unpacked = get_args(parameter.annotation)
        if not unpacked and not also:  # a function that takes anything, such as a decorator's
            return
        for options in unpacked:
            known |= dict.fromkeys(options.__annotations__)
    owner = getattr(function, "__qualname__", repr(function)).removesuffix(".__init__")
    check_option_names(given, [*dict.fromkeys([*known, *also])], owner)


_SAME_MEANING = (
    {"limit", "k", "top_k", "topk", "top_n", "topn", "n", "num_results", "similarity_top_k"},
    {"max_tokens", "token_limit", "budget", "token_budget", "max_length"},
    {"threshold", "score_threshold", "min_score", "similarity_cutoff", "tau", "cutoff"},
    {"verifier", "reranker", "rerank", "cross_encoder", "ranker"},
    {"embedder", "embeddings", "embedding", "embed_model", "embedding_model"},
    {"where", "filter", "filters", "metadata_filter"},
)
"""Names that libraries have for the same option."""


def find_nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name that one was probably meant to be, or None."""
    meant = [each for same in _SAME_MEANING if name.lower() in same for each in known if each in same]
    near = difflib.get_close_matches(name.lower(), meant or known, n=1, cutoff=0.0 if meant else 0.6)
    return near[0] if near else None


_INTEGERS = {
    "candidates": 1,
    "limit": 1,
    "hops": 1,
    "evidence": 1,
    "evidence_words": 1,
    "follow_k": 1,
    "min_verified": 0,
    "fallback_k": 0,
    "max_tokens": 1,
}
"""The least value of each integer setting."""
_PROBABILITIES = (
    "threshold",
    "sentence_threshold",
    "fallback_floor",
    "fill_below",
    "redundancy",
    "diversify",
    "sufficiency_threshold",
)
_OPTIONAL = ("sentence_threshold", "sufficiency_threshold")
"""The probabilities that may be None."""
_CHOICES = {
    "mode": get_args(Mode),
    "sources": get_args(Sources),
    "packing": get_args(Packing),
    "duplicates": get_args(Duplicates),
    "when_insufficient": get_args(WhenInsufficient),
    "lexical": (*get_args(LexicalKind), None),
}


def _check(name: str, value: object, is_valid: bool, valid: str) -> None:
    if not is_valid:
        raise ConfigurationError(f"{name} must be {valid}, got {show(value, 200)}")


def _check_integer(name: str, value: Any, least: int) -> int:  # noqa: ANN401
    is_valid = isinstance(value, Integral) and not isinstance(value, bool) and value >= least  # type: ignore[operator]
    _check(name, value, is_valid, f"an integer of at least {least}")
    return int(value)


def _check_seconds(name: str, value: Any) -> float:  # noqa: ANN401
    is_valid = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < float("inf")
    _check(name, value, is_valid, "a finite number of seconds above 0, or None")
    return float(value)


def _check_probability(name: str, value: Any) -> float:  # noqa: ANN401
    is_valid = isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= 1
    _check(name, value, is_valid, "between 0 and 1")
    return float(value)
