"""Refuse to pickle or copy objects that threads share."""

from typing import ClassVar, Never, SupportsIndex

from meve.errors import ConfigurationError


class NotPicklable:
    """A base class whose objects can't be pickled or copied."""

    _instead: ClassVar[str]
    """The advice at the end of the error message."""

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> Never:
        """Refuse `pickle`, `copy.copy` and `copy.deepcopy`.

        Raises:
            ConfigurationError: always; the message says what to do instead.
        """
        raise ConfigurationError(
            f"a {type(self).__name__} can't be pickled or copied: threads may share it; {self._instead}"
        )
