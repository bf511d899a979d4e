"""Bearer tokens: random, and stored as hashes only."""

import hashlib
import secrets


def make_token(prefix: str) -> str:
    """Return a new random token."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def hash_token(token: str) -> str:
    """Return the hash under which a bearer token is stored; tokens are random, so no salt is needed."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
