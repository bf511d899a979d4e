"""The settings of a router."""

from dataclasses import dataclass
from typing import Literal, Self, get_args

from meve.errors import ConfigurationError
from meve.routing._plan import Tier

Grounding = Literal["llm", "verifier", "overlap", "off"]
"""What checks that an answer stands in the evidence: the language model, the memory's verifier, shared words, or
nothing."""
_COUNTS = {
    "profile_tokens": 1, "targeted_tokens": 1, "deep_tokens": 1, "complete_tokens": 1, "window": 64, "answer_tokens": 1,
    "short_answer": 0, "hops": 1,
}  # fmt: skip
"""The least value of each whole number."""
_SHARES = ("min_confidence", "grounding_threshold", "overlap_threshold", "evidence_threshold")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterConfig:
    """The settings of a `MemoryRouter`. The defaults serve users; `paper` returns the published behaviour.

    Raises:
        ConfigurationError: a value of the wrong type or out of range.

    >>> RouterConfig(window=2_048).answer_tokens
    256
    """

    profile_tokens: int = 160
    """The token budget of the profile tier."""
    targeted_tokens: int = 320
    """The token budget of targeted retrieval."""
    deep_tokens: int = 640
    """The token budget of deep reasoning."""
    complete_tokens: int = 1_600
    """What the budget of deep reasoning may grow to where a count or a list finds more that matches."""
    window: int = 4_096
    """The language model's window, in tokens. Question, standing wishes, evidence and answer fit into it."""
    answer_tokens: int = 256
    """The tokens of the window that are kept for the answer."""
    min_confidence: float = 0.5
    """Below this confidence, in [0, 1], the heavier of the two likeliest tiers is taken."""
    llm_router: bool = False
    """Whether the language model chooses the tier. If its reply can't be read or it fails, the rules and the classifier
    do."""
    hops: int = 2
    """Deep reasoning: the number of searches in a row; from the second on, with the best evidence as part of the
    query."""
    filter_period: bool = True
    """Whether a time that the question names excludes memories that were added before it. They are read after all if
    nothing else is found."""
    grounding: Grounding = "verifier"
    """What checks that an answer of more than `short_answer` words stands in the evidence."""
    grounding_threshold: float = 0.5
    """The least probability of the verifier for a grounded answer, in [0, 1]."""
    overlap_threshold: float = 0.07
    """The least share of an answer's words in the evidence, in [0, 1], where words decide: with `grounding="overlap"`,
    and where the reply of the language model can't be read."""
    short_answer: int = 6
    """Answers of at most so many words, numbers, yes and no aren't checked for grounding."""
    check_short: bool = True
    """Whether a short answer passes only if its names and words stand in the evidence or the question, and, except for
    counts and calculations, its numbers."""
    evidence_threshold: float = 0.5
    """The least `sufficiency` of the evidence, in [0, 1], at which the language model is asked at all. Below it, the
    router escalates, and abstains after the last tier; higher values refuse more; 0 asks in any case."""
    abstain: bool = True
    """Whether an answer that passes no check in the last tier is withheld. If not, the last answer is returned."""
    abstention: str = "I don't know: nothing that is remembered answers this."
    """The text of an answer that is withheld."""
    llm_timeout: float = 60.0
    """Seconds after which a call of the language model counts as failed."""

    def __post_init__(self) -> None:
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigurationError(f"{name} must be a whole number, {least} or more, got {value!r:.40}")
        for name in _SHARES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigurationError(f"{name} must be a number between 0 and 1, got {value!r:.40}")
        for name in ("llm_router", "filter_period", "check_short", "abstain"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigurationError(f"{name} must be True or False, got {getattr(self, name)!r:.40}")
        self._check_rest()

    def _check_rest(self) -> None:
        if self.grounding not in get_args(Grounding):
            choices = ", ".join(get_args(Grounding))
            raise ConfigurationError(f"grounding must be one of {choices}, got {self.grounding!r:.40}")
        seconds = self.llm_timeout
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
            raise ConfigurationError(f"llm_timeout must be a number of seconds above 0, got {seconds!r:.40}")
        if not isinstance(self.abstention, str) or not self.abstention.strip():
            raise ConfigurationError(f"abstention must be a text, got {self.abstention!r:.40}")
        if self.window <= self.answer_tokens:
            raise ConfigurationError(
                f"window must exceed answer_tokens, got {self.window} and {self.answer_tokens}: nothing would be left"
            )

    @classmethod
    def paper(cls) -> Self:
        """Return the published behaviour: grounding by the language model, no check of short answers, no abstention.

        Answers of at most six words, numbers, yes and no pass; where the model's reply to the grounding check is
        neither yes nor no, 7 % of shared words decide. The budgets of the tiers aren't published.

        Source: MemFlow (Chen, Li, Wang 2026).
        """
        return cls(
            llm_router=True, grounding="llm", check_short=False, evidence_threshold=0.0, abstain=False,
            overlap_threshold=0.07, short_answer=6, min_confidence=0.0,
        )  # fmt: skip

    def budget(self, tier: Tier) -> int:
        """Return the token budget of a tier."""
        budgets = {Tier.PROFILE: self.profile_tokens, Tier.TARGETED: self.targeted_tokens, Tier.DEEP: self.deep_tokens}
        return budgets[tier]
