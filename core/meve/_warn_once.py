"""Log a warning once per process."""

import logging

logger = logging.getLogger("meve")
_said: set[str] = set()


def warn_once(key: str, message: str, *values: object) -> None:
    """Log a warning of the logger `meve`, unless one with this key was logged before."""
    if key not in _said:
        _said.add(key)
        logger.warning(message, *values)
