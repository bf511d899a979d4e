"""Resolve the owner of each item: the place that the store names, checked on every call."""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from langchain_core.runnables.config import ensure_config
from langgraph.store.base import InvalidNamespaceError

from langchain_meve._user_id import find_user_id, runtime_context
from meve.errors import ConfigurationError, ValidationError
from meve.memory.items.item import Namespace, check_namespace
from meve.memory.items.namespace_pattern import NamespacePattern
from meve.memory.records import UserId, user_key

OwnerPlace: TypeAlias = Literal["namespace", "key", "run"]
"""Where the owner of an item stands: at `{user_id}` in its namespace, in its key, or in the run that makes the call."""

_LINES = (
    "MeVeStore(memory, namespaces='users/{user_id}/*') if namespaces name the owner, MeVeStore(memory, "
    "namespaces='users', owner='key') if the key is the owner, MeVeStore(memory, owner='run') if the run's user owns "
    "all, or MeVeStore(memory, user_id='alice') for one owner"
)


class NamespaceError(ValidationError, InvalidNamespaceError):
    """Raised for a namespace that is invalid or names no owner."""


class Tenancy:
    """Maps namespaces and prefixes to owners.

    Args:
        user_id: the only owner; None if there may be several.
        namespaces: the pattern that every namespace must fit.
        owner: where the owner stands.
        shared: by pattern, the owner of the namespaces that fit it.
        across_owners: whether a prefix that names no owner stands for all owners.

    Raises:
        ConfigurationError: the arguments don't say where the owner stands, or a pattern is invalid.
        ValidationError: an invalid user.
    """

    def __init__(
        self,
        user_id: UserId | None,
        namespaces: str | None,
        owner: OwnerPlace,
        shared: Mapping[str, UserId] | None,
        *,
        across_owners: bool,
    ) -> None:
        if owner not in get_args(OwnerPlace):
            raise ConfigurationError(f"owner must be one of {', '.join(get_args(OwnerPlace))}, got {owner!r:.40}")
        if user_id is None and namespaces is None and owner != "run":
            raise ConfigurationError(f"say whose the items are: {_LINES}")
        if user_id is not None:
            user_key(user_id)
            if namespaces is not None or owner != "namespace" or across_owners:
                raise ConfigurationError(
                    "user_id names the only owner: leave namespaces, owner and across_owners out, or user_id"
                )
        self._user_id = user_id
        self._place = owner
        text = namespaces or "*"
        self._pattern = None if user_id is not None else NamespacePattern.parse(text, has_owner=owner == "namespace")
        self._shared = [
            (NamespacePattern.parse(each, "shared", has_owner=False), of) for each, of in (shared or {}).items()
        ]
        for _, of in self._shared:
            user_key(of)
        self._across = across_owners

    def owner_of(self, namespace: Namespace, key: object) -> UserId:
        """Return the owner of an item.

        Raises:
            NamespaceError: the namespace is invalid, empty, LangGraph's own, doesn't fit, or names another owner than
                the run.
        """
        labels = _labels(namespace)
        if not labels:
            raise NamespaceError("namespace must be a tuple of at least one label, got ()")
        if labels[0] == "langgraph":
            raise NamespaceError(f"namespace must not begin with LangGraph's own 'langgraph', got {namespace!r:.120}")
        for pattern, of in self._shared:
            if pattern.fits(labels):
                return of
        if self._pattern is not None and not self._pattern.fits(labels):
            raise self._refusal("namespace", labels)
        return self._checked("namespace", labels, key)

    def owner_of_prefix(self, prefix: Namespace) -> UserId:
        """Return the owner of all items under a prefix.

        Raises:
            NamespaceError: the prefix is invalid, doesn't fit, names no owner, or another one than the run.
        """
        labels = _labels(prefix)
        for pattern, of in self._shared:
            if pattern.fits_begin(labels):
                if len(labels) >= max(1, len(pattern.labels)):
                    return of
                raise self._refusal("prefix", labels)
        if self._pattern is not None and not self._pattern.fits_begin(labels):
            raise self._refusal("prefix", labels)
        return self._checked("prefix", labels, None)

    def spans_owners(self, prefix: Namespace) -> bool:
        """Return whether an operator's store reads the items of all owners under a prefix, since it names none."""
        if not self._across or _run_user() is not None:
            return False
        try:
            self.owner_of_prefix(prefix)
        except NamespaceError:
            labels = _labels(prefix)
            patterns = [self._pattern, *(pattern for pattern, _ in self._shared)]
            return any(pattern is not None and pattern.fits_begin(labels) for pattern in patterns)
        return False

    def belongs_to(self, owner: UserId, namespace: Namespace, key: object) -> bool:
        """Return whether an item of this namespace and key is one of an owner's, by this store's rules."""
        try:
            return user_key(self.owner_of(namespace, key)) == user_key(owner)
        except NamespaceError:
            return False

    def _checked(self, argument: str, labels: Namespace, key: object) -> UserId:
        named, run = self._named(labels, key), _run_user()
        if named is None:
            named = run if self._place != "namespace" else None
        if named is None:
            raise self._refusal(argument, labels)
        try:
            mine = user_key(named)
        except ValidationError as cause:
            raise NamespaceError(f"{argument} {labels!r:.120} names an invalid owner: {cause}") from cause
        if run is not None and user_key(run) != mine:
            raise NamespaceError(
                f"{argument} {labels!r:.120} belongs to {named!r:.80}, and the user of this run is {run!r:.80}: read "
                "and write only what is theirs, or name what all share by MeVeStore(…, shared={'pattern/*': 'owner'})"
            )
        return named

    def _named(self, labels: Namespace, key: object) -> UserId | None:
        if self._user_id is not None:
            return self._user_id
        if self._place == "namespace" and self._pattern is not None:
            return self._pattern.owner_of(labels)
        return key if self._place == "key" and isinstance(key, str) else None

    def _refusal(self, argument: str, labels: Namespace) -> NamespaceError:
        rule = f"namespaces={self._pattern.text!r}" if self._pattern is not None else f"user_id={self._user_id!r:.80}"
        return NamespaceError(
            f"{argument} {labels!r:.120} names no owner by {rule} and owner={self._place!r}: name the place of the "
            f"owner when you make the store, by {_LINES}"
        )


def _run_user() -> UserId | None:
    """Return the user of the run that makes the call; None outside of a run, or if it has none."""
    return find_user_id(None, runtime_context(), ensure_config())


def _labels(namespace: Namespace) -> Namespace:
    try:
        return check_namespace(namespace)
    except ValidationError as cause:
        raise NamespaceError(str(cause)) from cause
