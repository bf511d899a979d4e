"""Whose a namespace is: told by its shape, or by whom the store was opened for. What names nobody is refused."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from langgraph.store.base import InvalidNamespaceError

from meve.errors import ConfigurationError, ValidationError
from meve.memory.items.item import Label, Namespace, checked_namespace
from meve.memory.records import UserId, user_key

OWNER, ANY = "{user_id}", "*"
Shape: TypeAlias = tuple[Label, ...]
"""How namespaces begin: labels as they are, `{user_id}` for the owner, `*` for any one label."""
SHAPES: tuple[Shape, ...] = (("memories", OWNER), (OWNER, "memories"))
"""Those of LangGraph's guides and of langmem. No namespace has two owners by them."""


class NamespaceError(ValidationError, InvalidNamespaceError):
    """A namespace that can't be, or that names no owner."""


class Owners:
    """Tells owners.

    Args:
        owner: whose every namespace is; None to tell it by shape.
        shapes: how namespaces begin, each with one `{user_id}`; one shape, or several.

    Raises:
        ConfigurationError: a shape that can't be.
        ValidationError: an owner that can't be.
    """

    def __init__(self, owner: UserId | None, shapes: Shape | Sequence[Shape]) -> None:
        if owner is not None:
            user_key(owner)
        self._owner = owner
        self._shapes = _checked(shapes)

    def of(self, namespace: Namespace) -> UserId:
        """The owner of an item's namespace.

        Raises:
            NamespaceError: no namespace, an empty one, LangGraph's own, or one of no shape that is known.
        """
        labels = _labels(namespace)
        if not labels:
            raise NamespaceError("the namespace is empty: give a tuple of labels")
        if labels[0] == "langgraph":
            raise NamespaceError(f"namespace {namespace!r:.120}: what begins with 'langgraph' is LangGraph's own")
        fitting = [shape for shape in self._shapes if len(labels) >= len(shape) and _fits(shape, labels)]
        return self._one(labels, fitting, "namespace")

    def of_prefix(self, prefix: Namespace) -> UserId:
        """The owner of everything under a prefix.

        Raises:
            NamespaceError: no prefix, or one that names no owner, or under which several may have items.
        """
        labels = _labels(prefix)
        return self._one(labels, [shape for shape in self._shapes if _fits(shape, labels)], "prefix")

    def _one(self, labels: Namespace, fitting: Sequence[Shape], what: str) -> UserId:
        if self._owner is not None:
            return self._owner
        found = {labels[at] if (at := shape.index(OWNER)) < len(labels) else None for shape in fitting}
        owner = found.pop() if len(found) == 1 else None
        if owner is None:
            known = " or ".join(map(repr, self._shapes))
            raise NamespaceError(
                f"{what} {labels!r:.120} names no owner; here namespaces begin like {known}. Give one that does, tell "
                "MeVeStore(…, namespaces=…) how yours begin, or open it for one user: MeVeStore(…, owner=…)"
            )
        try:
            user_key(owner)
        except ValidationError as cause:
            raise NamespaceError(f"{what} {labels!r:.120} names an owner that can't be: {cause}") from cause
        return owner


def _labels(namespace: Namespace) -> Namespace:
    try:
        return checked_namespace(namespace)
    except ValidationError as cause:
        raise NamespaceError(str(cause)) from cause


def _fits(shape: Shape, labels: Namespace) -> bool:
    return all(part in (OWNER, ANY) or part == label for part, label in zip(shape, labels, strict=False))


def _checked(shapes: Shape | Sequence[Shape]) -> tuple[Shape, ...]:
    given: list[object] = [] if isinstance(shapes, str) or not isinstance(shapes, Iterable) else list(shapes)
    several = any(isinstance(part, list | tuple) for part in given)
    made = tuple(checked_namespace(shape) for shape in (given if several else [given]))
    for shape in made:
        if shape.count(OWNER) != 1:
            raise ConfigurationError(
                f"namespaces has {shape!r:.120}: give shapes such as ('memories', '{OWNER}'), each with one '{OWNER}', "
                f"which stands for the owner; '{ANY}' stands for any label"
            )
    return made
