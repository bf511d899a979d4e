"""Who may ask: the host and origin that a request names, its bearer token, its rate and its body."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from meve.errors import ConfigurationError
from meve.service._web.answers import (
    DeniedError,
    check_framing,
    check_rate,
    read_bearer,
    read_body,
    refuse_stranger,
)
from meve.service._web.rates import RateLimiter
from meve.service.server.limits import ServerLimits
from meve.service.server.operations import Caller
from meve.service.server.tokens import TokenFile

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class HostGuard:
    """Refuses requests to another host name (DNS rebinding), and those that another site's page makes in a browser."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self.app, self.hosts = app, frozenset(map(str.lower, hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            request = Request(scope)
            try:
                check_framing(request)
                self._check(request)
            except DeniedError as error:
                await error.to_response()(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _check(self, request: Request) -> None:
        given = request.headers.getlist("host")
        host = given[0].lower() if len(given) == 1 else ""
        named = _HOST.fullmatch(host)
        if named is None or named["name"].strip("[]") not in self.hosts:
            raise DeniedError(421, "host", "this server isn't known by the name in Host: see --allow-host")
        origins = request.headers.getlist("origin")
        own = {f"http://{host}", f"https://{host}"}
        site = request.headers.get("sec-fetch-site", "none")
        if any(origin.lower() not in own for origin in origins) or site not in ("none", "same-origin"):
            raise DeniedError(403, "origin", "pages of other sites may not ask this server")


def allowed_hosts(host: str, named: Collection[str]) -> Collection[str]:
    """Return the host names by which requests may address a server that listens on `host`.

    Raises:
        ConfigurationError: it listens on all addresses, and no name was given.
    """
    if host in ("0.0.0.0", "::", "") and not named:
        raise ConfigurationError(
            f"host {host!r} stands for all addresses: name with --allow-host the host names that clients use"
        )
    return LOOPBACK_NAMES | {host.strip("[]"), *named}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Admits requests of callers."""

    tokens: TokenFile | None
    """None if everybody who reaches the server acts as `user`."""
    local: Caller
    limits: ServerLimits
    limiter: RateLimiter

    @classmethod
    def make(cls, tokens: TokenFile | None, local: Caller, limits: ServerLimits, now: Callable[[], float]) -> "Gate":
        """Return a gate; `now` counts seconds."""
        limiter = RateLimiter(limits.requests_per_second, limits.burst, now)
        return cls(tokens=tokens, local=local, limits=limits, limiter=limiter)

    async def admit(self, request: Request) -> tuple[Caller, bytes]:
        """Return who asks, and the body.

        Raises:
            DeniedError: no valid token, too many requests, no JSON, or a body that is too large or too slow.
        """
        caller = self._find_caller(request)
        check_rate(self.limiter.take(caller.key))
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise DeniedError(415, "no_json", "Content-Type must be application/json")
        return caller, await read_body(request, self.limits.body_bytes, self.limits.body_seconds)

    def _find_caller(self, request: Request) -> Caller:
        if self.tokens is None:
            return self.local
        bearer = read_bearer(request)
        grant = None if bearer is None else self.tokens.authenticate(bearer)
        if grant is None:
            raise refuse_stranger()
        return Caller(user_id=grant.user, read_only=grant.read_only, may_inspect=grant.may_inspect)
