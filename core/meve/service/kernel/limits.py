"""What one request, one conversation and one tenant may take from a kernel."""

from dataclasses import dataclass

from meve.service._web.rates import check_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLimits:
    """Limits of a kernel, each a whole number of at least 1. A request beyond one is refused, never shortened.

    Raises:
        ConfigurationError: a value of the wrong type or below 1.
    """

    body_bytes: int = 1 << 20
    """The most bytes of a request's body."""
    body_seconds: int = 10
    """The longest time in which a body may arrive."""
    batch_turns: int = 1_000
    """The most turns that one request adds."""
    conversation_turns: int = 200_000
    """The most turns of a conversation."""
    slice_turns: int = 10_000
    """The most turns of a slice; a policy may ask for fewer with `max_turns`."""
    requests_per_second: int = 200
    """The most requests of a tenant in the long run."""
    burst: int = 400
    """The most requests of a tenant at once."""
    token_seconds: int = 60
    """The lifetime of a signed slice."""
    turns_in_memory: int = 1_000_000
    """The most turns in the graphs, and in the slices, that are kept in memory; 100 bytes of a slice count as one."""

    def __post_init__(self) -> None:
        check_limits(self)
