"""What can go wrong: one root, so that callers can catch broadly, and leaves, so that they can recover narrowly.

    MeveError
    ├── ConfigurationError            a setting, an option or a combination of parts that can't work
    │   └── MissingExtraError         an optional dependency isn't installed; the message holds the pip line
    ├── ValidationError               input that can't be used
    │   ├── QueryError                a query that is empty, of the wrong type, or longer than a model's window
    │   ├── PassageError              a passage without text, or with metadata that JSON can't hold
    │   ├── DuplicateIdError          an id that is already taken, or given twice
    │   ├── UnknownIdError            an id that isn't there
    │   └── VectorError               a vector of the wrong dimension, or with NaN or infinity in it
    ├── ModelError                    a model that can't be loaded or that failed
    │   ├── ModelNotFoundError        no model of that name in reach
    │   ├── TokenizerUnavailableError a token table that can't be had here
    │   └── CalibrationError          labelled pairs, or a calibration, that can't be used
    ├── RetrievalError                a retrieval that couldn't be carried out
    │   └── EmptyCorpusError          nothing to retrieve from
    ├── StorageError                  an index on disk that can't be read or written
    │   ├── IndexNotFoundError        no index at that path
    │   ├── IndexCorruptError         an index with missing, cut or altered files
    │   ├── IndexMismatchError        an index of another format, model or tokenizer
    │   ├── IndexBusyError            another process is writing it
    │   ├── StoreBusyError            other processes kept a memory's file locked for too long
    │   ├── StoreCorruptError         a memory's file that isn't one, or was damaged
    │   └── StoreVersionError         a memory's file of a newer version
    ├── PolicyError                   a policy that can't be used, or what a policy forbids
    │   └── HoldError                 a record on hold, which nothing may change or erase
    ├── AuditError                    an audit log that was altered, cut or reordered
    ├── IngestError                   files that can't be read into passages
    ├── TrainingError                 a model that can't be trained on what was given, or in that folder
    └── EvaluationError               an evaluation that can't be carried out
        └── DatasetError              a set that is absent, cut short, of another format, or at odds with itself

Every message names the thing, the value and the next step. Errors survive pickling.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class MeveError(Exception):
    """The root of every error that MeVe raises on purpose."""


class ConfigurationError(MeveError, ValueError):
    """A setting, an option or a combination of parts that can't work."""


class MissingExtraError(ConfigurationError, ImportError):
    """An optional dependency isn't installed; the message holds the pip line that installs it."""


class ValidationError(MeveError, ValueError):
    """Input that can't be used; nothing was changed."""


class QueryError(ValidationError):
    """A query that is empty, of the wrong type, or longer than a model's window."""


class PassageError(ValidationError):
    """A passage without text, or with metadata that JSON can't hold."""


class DuplicateIdError(ValidationError):
    """An id that is already taken, or that is given twice."""


class UnknownIdError(ValidationError, LookupError):
    """An id that isn't there."""


class VectorError(ValidationError):
    """A vector of the wrong dimension, or with NaN or infinity in it."""


class ModelError(MeveError):
    """A model that can't be loaded, or that failed while it ran."""


class ModelNotFoundError(ModelError):
    """No model of that name is in reach."""


class TokenizerUnavailableError(ModelError):
    """A token table that can't be had here."""


class CalibrationError(ModelError, ValueError):
    """Labelled pairs, or a calibration, that can't be used."""


class RetrievalError(MeveError):
    """A retrieval that couldn't be carried out."""


class EmptyCorpusError(RetrievalError):
    """There is nothing to retrieve from."""


class StorageError(MeveError):
    """An index on disk that can't be read or written."""


class IndexNotFoundError(StorageError):
    """There is no index at that path."""


class IndexCorruptError(StorageError):
    """An index whose files are missing, cut short or altered."""


class IndexMismatchError(StorageError):
    """An index of another format, model or tokenizer than the one at hand."""


class IndexBusyError(StorageError):
    """Another process is writing this index."""


class StoreBusyError(StorageError):
    """Other processes kept a memory's file locked for longer than one waits."""


class StoreCorruptError(StorageError):
    """A memory's file isn't one, or was damaged."""


class StoreVersionError(StorageError):
    """A memory's file was written by a newer version."""


class PolicyError(MeveError, ValueError):
    """A policy that can't be used, or what a policy forbids."""


class HoldError(PolicyError):
    """A record is on hold: nothing may change or erase it."""


class AuditError(MeveError):
    """An audit log was altered, cut or reordered."""


class IngestError(MeveError):
    """Files that can't be read into passages."""


class TrainingError(MeveError):
    """A model that can't be trained on what was given, or in that folder."""


class EvaluationError(MeveError):
    """An evaluation that can't be carried out."""


class DatasetError(EvaluationError):
    """A set that is absent, cut short, of another format, or at odds with itself."""


class MemoryLostWarning(UserWarning):
    """A memory couldn't be read or written, and the conversation went on without it."""


class StaleWarning(UserWarning):
    """A store holds other passages than those whose words are indexed."""


@contextmanager
def wrap_errors(error: type[MeveError], doing: str) -> Iterator[None]:
    """Turn whatever another library raises into `error`, saying what was being done; our own errors pass through."""
    try:
        yield
    except MeveError:
        raise
    except Exception as cause:
        raise error(f"{doing} failed: {type(cause).__name__}: {cause}") from cause


def missing_extra(package: str, extra: str, purpose: str) -> MissingExtraError:
    """The error for an optional dependency that isn't installed.

    >>> print(missing_extra("sentence_transformers", "models", "an embedder of your own"))
    an embedder of your own needs 'sentence_transformers', which isn't installed: pip install 'meve[models]'
    """
    return missing_extras({package: extra}, purpose)


def missing_extras(needs: Mapping[str, str], purpose: str) -> MissingExtraError:
    """The error for optional dependencies that aren't installed.

    Args:
        needs: their importable names, each with the extra that installs it.
        purpose: what they are for.
    """
    *others, last = map(repr, needs)
    packages = f"{', '.join(others)} and {last}" if others else last
    extras = ",".join(dict.fromkeys(needs.values()))
    how = "aren't installed" if others else "isn't installed"
    return MissingExtraError(f"{purpose} needs {packages}, which {how}: pip install 'meve[{extras}]'")
