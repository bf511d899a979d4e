"""Patterns of namespaces, which say where in a namespace its owner stands."""

from dataclasses import dataclass

from meve.errors import ConfigurationError, ValidationError
from meve.memory.items.item import Namespace
from meve.memory.records import UserId, user_key

OWNER, ANY = "{user_id}", "*"


@dataclass(frozen=True, slots=True)
class NamespacePattern:
    """A pattern such as `users/{user_id}/*`: labels between slashes.

    `{user_id}` stands for the owner, `*` for any one label, and a `*` at the end for any number of labels, also none.
    """

    text: str
    labels: tuple[str, ...]
    is_open: bool
    """Whether any labels may follow."""

    @classmethod
    def parse(cls, text: object, name: str = "namespaces", *, has_owner: bool = True) -> "NamespacePattern":
        """Return a pattern, which names the owner once; with `has_owner=False`, which names none.

        Raises:
            ConfigurationError: it isn't such a pattern.

        >>> NamespacePattern.parse("users/{user_id}/*").owner_of(("users", "alice", "notes"))
        'alice'
        """
        labels = text.split("/") if isinstance(text, str) else []
        if not isinstance(text, str) or not all(labels) or labels.count(OWNER) != has_owner:
            place = f"name {OWNER} once" if has_owner else f"not name {OWNER}"
            raise ConfigurationError(
                f"{name} must be labels between slashes, and {place}, such as "
                f"{'users/{user_id}/*' if has_owner else 'users/*'!r}, got {text!r:.120}"
            )
        if any("{" in label and label != OWNER for label in labels):
            raise ConfigurationError(f"{name} may hold no other placeholder than {OWNER}, got {text!r:.120}")
        is_open = labels[-1] == ANY
        return cls(text, tuple(labels[:-1] if is_open else labels), is_open)

    def fits(self, namespace: Namespace) -> bool:
        """Return whether an item may have this namespace."""
        is_long_enough = len(namespace) >= len(self.labels) if self.is_open else len(namespace) == len(self.labels)
        return is_long_enough and self.fits_begin(namespace)

    def fits_begin(self, prefix: Namespace) -> bool:
        """Return whether namespaces that begin like this may fit."""
        pairs = zip(self.labels, prefix, strict=False)
        is_short_enough = self.is_open or len(prefix) <= len(self.labels)
        return is_short_enough and all(part in (OWNER, ANY, label) for part, label in pairs)

    def owner_of(self, namespace: Namespace) -> UserId | None:
        """Return the owner of the items in a namespace, or under a prefix; None if it doesn't fit, or names nobody."""
        at = self.labels.index(OWNER)
        if at >= len(namespace) or not self.fits_begin(namespace):
            return None
        try:
            user_key(namespace[at])
        except ValidationError:
            return None
        return namespace[at]
