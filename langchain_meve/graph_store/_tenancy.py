"""Resolve the user of a namespace; a namespace that names no user is refused."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from langgraph.store.base import InvalidNamespaceError

from meve.errors import ConfigurationError, ValidationError
from meve.memory.items.item import Label, Namespace, check_namespace
from meve.memory.records import UserId, user_key

USER_PLACEHOLDER, WILDCARD = "{user_id}", "*"
NamespacePattern: TypeAlias = tuple[Label, ...]
"""The first labels of a namespace: literal ones, `{user_id}` for the user, `*` for any label."""
DEFAULT_PATTERNS: tuple[NamespacePattern, ...] = (("memories", USER_PLACEHOLDER), (USER_PLACEHOLDER, "memories"))
"""The patterns of LangGraph's guides and of langmem. A namespace has at most one user by them."""


class NamespaceError(ValidationError, InvalidNamespaceError):
    """Raised for a namespace that is invalid or names no user."""


class Tenancy:
    """Maps namespaces and prefixes to users.

    Args:
        user_id: the user of every namespace; None to read the user from the namespace.
        patterns: one pattern, or several, each with one `{user_id}`.

    Raises:
        ConfigurationError: an invalid pattern.
        ValidationError: an invalid user.
    """

    def __init__(self, user_id: UserId | None, patterns: NamespacePattern | Sequence[NamespacePattern]) -> None:
        if user_id is not None:
            user_key(user_id)
        self._user_id = user_id
        self._patterns = _check_patterns(patterns)

    def user_of(self, namespace: Namespace) -> UserId:
        """Return the user of an item's namespace.

        Raises:
            NamespaceError: the namespace is invalid, empty, reserved by LangGraph, or matches no pattern.
        """
        labels = _labels(namespace)
        if not labels:
            raise NamespaceError("namespace must be a tuple of at least one label, got ()")
        if labels[0] == "langgraph":
            raise NamespaceError(f"namespace must not begin with LangGraph's own 'langgraph', got {namespace!r:.120}")
        matching = [each for each in self._patterns if len(labels) >= len(each) and _pattern_matches(each, labels)]
        return self._single_user(labels, matching, "namespace")

    def user_of_prefix(self, prefix: Namespace) -> UserId:
        """Return the user of all items under a prefix.

        Raises:
            NamespaceError: the prefix is invalid, or several users may have items under it.
        """
        labels = _labels(prefix)
        return self._single_user(labels, [each for each in self._patterns if _pattern_matches(each, labels)], "prefix")

    def _single_user(self, labels: Namespace, matching: Sequence[NamespacePattern], argument: str) -> UserId:
        if self._user_id is not None:
            return self._user_id
        users = {labels[at] if (at := each.index(USER_PLACEHOLDER)) < len(labels) else None for each in matching}
        user_id = users.pop() if len(users) == 1 else None
        if user_id is None:
            expected = " or ".join(map(repr, self._patterns))
            raise NamespaceError(
                f"{argument} must begin like {expected} to name its user, got {labels!r:.120}: set your own pattern by "
                "MeVeStore(…, namespace_patterns=…), or open the store for one user by MeVeStore(…, user_id=…)"
            )
        try:
            user_key(user_id)
        except ValidationError as cause:
            raise NamespaceError(f"{argument} {labels!r:.120} names an invalid user: {cause}") from cause
        return user_id


def _labels(namespace: Namespace) -> Namespace:
    try:
        return check_namespace(namespace)
    except ValidationError as cause:
        raise NamespaceError(str(cause)) from cause


def _pattern_matches(pattern: NamespacePattern, labels: Namespace) -> bool:
    return all(part in (USER_PLACEHOLDER, WILDCARD, label) for part, label in zip(pattern, labels, strict=False))


def _check_patterns(patterns: NamespacePattern | Sequence[NamespacePattern]) -> tuple[NamespacePattern, ...]:
    parts: list[object] = [] if isinstance(patterns, str) or not isinstance(patterns, Iterable) else list(patterns)
    is_several = any(isinstance(part, list | tuple) for part in parts)
    checked = tuple(check_namespace(each) for each in (parts if is_several else [parts]))
    for pattern in checked:
        if pattern.count(USER_PLACEHOLDER) != 1:
            raise ConfigurationError(
                f"namespace_patterns must hold '{USER_PLACEHOLDER}' once in each pattern, got {pattern!r:.120}: "
                f"write ('memories', '{USER_PLACEHOLDER}'), with '{WILDCARD}' for any label"
            )
    return checked
