"""What one request and one user may take from a server."""

from dataclasses import dataclass

from meve.service._web.rates import check_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of `meve serve`, each a whole number of at least 1. A request beyond one is refused.

    Raises:
        ConfigurationError: a value of the wrong type or below 1.
    """

    body_bytes: int = 1 << 17
    """The most bytes of a request's body."""
    body_seconds: int = 10
    """The longest time in which a body may arrive."""
    requests_per_second: int = 10
    """The most requests of a user in the long run."""
    burst: int = 40
    """The most requests of a user at once."""
    threads: int = 8
    """The most requests at work."""

    def __post_init__(self) -> None:
        check_limits(self)
