"""Define every error and warning that MeVe raises, under the one root `MeveError`.

    MeveError
    ├── ConfigurationError            an invalid setting, option or combination of components
    │   └── MissingExtraError         an optional dependency isn't installed; the message holds the pip line
    ├── ValidationError               invalid input
    │   ├── QueryError                a query that is empty, of the wrong type, or too long for a model
    │   ├── PassageError              a passage without text, or with metadata that JSON can't hold
    │   ├── DuplicateIdError          a taken or repeated id
    │   ├── UnknownIdError            an unknown id
    │   └── VectorError               a vector of the wrong dimension, or with NaN or infinity in it
    ├── ModelError                    a model that can't be loaded or that failed
    │   ├── ModelNotFoundError        no model of that name is available
    │   ├── TokenizerUnavailableError a tokenizer that isn't available
    │   └── CalibrationError          invalid labelled pairs or an invalid calibration
    ├── RetrievalError                a retrieval that failed
    │   ├── EmptyCorpusError          nothing to retrieve from
    │   ├── AdmissibilityError        no valid slice of a conversation, so nothing was searched
    │   └── InsufficientContextError  a context that isn't sufficient, if `when_insufficient` is `raise`
    ├── StorageError                  an index on disk that can't be read or written
    │   ├── IndexNotFoundError        no index at that path
    │   ├── IndexCorruptError         an index with missing, truncated or altered files
    │   ├── IndexMismatchError        an index of another format, model or tokenizer
    │   ├── IndexBusyError            another process is writing it
    │   ├── StoreBusyError            another process kept a memory file locked for too long
    │   ├── StoreCorruptError         a damaged memory file, or a file of another kind
    │   ├── StoreVersionError         a memory file of a newer version
    │   └── KeyFileError              a memory's key file that is missing, another's, or locked with another key
    ├── PolicyError                   an invalid policy, or an operation that a policy forbids
    │   └── HoldError                 a record on hold, which must not be changed or erased
    ├── ConservationError             a change of a memory altered its conservation metrics too much
    ├── AuditError                    an altered, truncated or reordered audit log
    ├── IngestError                   files that can't be read into passages
    ├── TrainingError                 a model that can't be trained with this data or in this folder
    └── EvaluationError               an evaluation that failed
        └── DatasetError              a data set that is missing, truncated, inconsistent or of another format

A message names the argument, its value, what is valid, and the next step. Errors can be pickled.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class MeveError(Exception):
    """The root of every error that MeVe raises on purpose."""


class ConfigurationError(MeveError, ValueError):
    """An invalid setting, option or combination of components."""


class MissingExtraError(ConfigurationError, ImportError):
    """An optional dependency isn't installed; the message holds the pip line that installs it."""


class ValidationError(MeveError, ValueError):
    """Invalid input; nothing was changed."""


class QueryError(ValidationError):
    """A query that is empty, of the wrong type, or longer than a model's window."""


class PassageError(ValidationError):
    """A passage without text, or with metadata that JSON can't hold."""


class DuplicateIdError(ValidationError):
    """A taken or repeated id."""


class UnknownIdError(ValidationError, LookupError):
    """An unknown id."""


class VectorError(ValidationError):
    """A vector of the wrong dimension, or with NaN or infinity in it."""


class ModelError(MeveError):
    """A model that can't be loaded, or that failed while it ran."""


class ModelNotFoundError(ModelError):
    """No model of that name is available."""


class TokenizerUnavailableError(ModelError):
    """A tokenizer that isn't available."""


class CalibrationError(ModelError, ValueError):
    """Invalid labelled pairs or an invalid calibration."""


class RetrievalError(MeveError):
    """A retrieval that failed."""


class EmptyCorpusError(RetrievalError):
    """There is nothing to retrieve from."""


class AdmissibilityError(RetrievalError):
    """There is no valid slice of a conversation for this question, so nothing was searched."""


class InsufficientContextError(RetrievalError):
    """A context isn't sufficient, and `when_insufficient` is `raise`; the attribute `context` holds it, unfilled."""

    def __init__(self, message: str, context: Any = None) -> None:  # noqa: ANN401 - made in a layer above
        super().__init__(message)
        self.context = context

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the context when pickled."""
        return type(self), (str(self), self.context)


class StorageError(MeveError):
    """An index on disk that can't be read or written."""


class IndexNotFoundError(StorageError):
    """There is no index at that path."""


class IndexCorruptError(StorageError):
    """An index with missing, truncated or altered files."""


class IndexMismatchError(StorageError):
    """An index of another format, model or tokenizer."""


class IndexBusyError(StorageError):
    """Another process is writing this index."""


class StoreBusyError(StorageError):
    """Another process kept a memory file locked for too long."""


class StoreCorruptError(StorageError):
    """A damaged memory file, or a file of another kind."""


class StoreVersionError(StorageError):
    """A memory file of a newer version."""


class KeyFileError(StorageError):
    """The key file of a memory is missing, belongs to another memory, or is locked with another master key."""


class PolicyError(MeveError, ValueError):
    """An invalid policy, or an operation that a policy forbids."""


class HoldError(PolicyError):
    """A record on hold, which must not be changed or erased."""


class ConservationError(MeveError):
    """A change of a memory altered its conservation metrics by more than the threshold."""


class AuditError(MeveError):
    """An altered, truncated or reordered audit log."""


class IngestError(MeveError):
    """Files that can't be read into passages."""


class TrainingError(MeveError):
    """A model that can't be trained with this data or in this folder."""


class EvaluationError(MeveError):
    """An evaluation that failed."""


class DatasetError(EvaluationError):
    """A data set that is missing, truncated, inconsistent or of another format."""


class MemoryLostWarning(UserWarning):
    """A memory couldn't be read or written; the conversation continued without it."""


class StaleWarning(UserWarning):
    """A store holds other passages than its keyword index, or vectors of another embedder than the memory's."""


class LanguageWarning(UserWarning):
    """The verifier that ships, or a router, reads English, and the question or the passages are in another language."""


def warn(message: str, category: type[Warning], *, stacklevel: int) -> None:
    """Issue a warning and log it, on the logger `meve`.

    Args:
        message: holds no text of passages, questions or memories.
        category: the class of the warning.
        stacklevel: 1 for the caller's own line, 2 for that of its caller, and so on.
    """
    warnings.warn(message, category, stacklevel=stacklevel + 1)
    logging.getLogger("meve").warning(message)


@contextmanager
def wrap_errors(error: type[MeveError], action: str) -> Iterator[None]:
    """Raise `error`, naming the action, in place of any other exception; a `MeveError` passes unchanged."""
    try:
        yield
    except MeveError:
        raise
    except Exception as cause:
        raise error(f"{action} failed: {type(cause).__name__}: {cause}") from cause


def show(value: object, most: int) -> str:
    """Return the beginning of a value's `repr` for a message; its type if it has none, as an int of 5,000 digits.

    >>> show("tomato", 4), show(10**5_000, 80)
    ("'tom", 'a value of type int')
    """
    try:
        return repr(value)[:most]
    except Exception:
        return f"a value of type {type(value).__name__}"


def missing_extra(package: str, extra: str, purpose: str) -> MissingExtraError:
    """Return the error for an optional package that isn't installed.

    >>> print(missing_extra("sentence_transformers", "models", "an embedder of your own"))
    an embedder of your own needs 'sentence_transformers', which isn't installed: pip install 'meve[models]'
    """
    return missing_extras({package: extra}, purpose)


def missing_extras(needs: Mapping[str, str], purpose: str) -> MissingExtraError:
    """Return the error for optional packages that aren't installed.

    Args:
        needs: import names of packages, each with the extra that installs it.
        purpose: what the packages are for.
    """
    *others, last = map(repr, needs)
    packages = f"{', '.join(others)} and {last}" if others else last
    extras = ",".join(dict.fromkeys(needs.values()))
    how = "aren't installed" if others else "isn't installed"
    return MissingExtraError(f"{purpose} needs {packages}, which {how}: pip install 'meve[{extras}]'")
