"""A run's outcomes on disk, so that an interrupted run can be resumed."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from meve.errors import EvaluationError
from meve.evaluation.types import QuestionOutcome, parse_dataclass

_SCOPE_SETTINGS = ("peers", "questions", "peer_questions")
"""Settings that decide the number of questions, not the results: a resumed run may change them."""
_SETTINGS_BY_NAME = {"sets": "the set {} of other data", "peer_code": "the peer {} of other code"}
"""Settings with an entry for each set or peer: entries of both runs must be equal."""
SETTINGS, ROWS, LOCK = "settings.json", "outcomes.jsonl", ".lock"


class Journal:
    """A file with one line per outcome, written immediately, beside a file with the run's settings.

    A later run in the same folder may add sets, peers and questions. All other settings must be equal.

    Raises:
        EvaluationError: the folder holds a run with other settings, or other files under these names.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self._outcomes: dict[tuple[str, str, str], QuestionOutcome] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._acquire_lock()
            with ExitStack() as undo:
                undo.callback(self._lock.close)
                self._check_settings(dict(settings))
                self._read_outcomes()
                self._file = (folder / ROWS).open("a", encoding="utf-8")
                undo.pop_all()
        except OSError as cause:
            raise EvaluationError(f"can't use {folder} for results: {cause.strerror or cause}") from cause

    def close(self) -> None:
        """Close the file and release the lock."""
        self._file.close()
        self._lock.close()

    def get(self, set_name: str, system: str, question_id: str) -> QuestionOutcome | None:
        """Return a recorded outcome; None if there is none."""
        return self._outcomes.get((set_name, system, question_id))

    def put(self, set_name: str, system: str, outcome: QuestionOutcome) -> None:
        """Record one outcome."""
        line = json.dumps({"set": set_name, "system": system, **asdict(outcome)})
        self._file.write(line + "\n")
        self._file.flush()
        self._outcomes[(set_name, system, outcome.question_id)] = outcome

    def _acquire_lock(self) -> IO[bytes]:
        """Return a locked file; the operating system releases the lock when the process ends."""
        file = (self.folder / LOCK).open("wb")
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on Windows
            pass
        except OSError as cause:
            file.close()
            raise EvaluationError(f"another run is writing to {self.folder}: wait, or choose another --to") from cause
        return file

    def _check_settings(self, settings: dict[str, Any]) -> None:
        file = self.folder / SETTINGS
        settings = json.loads(json.dumps(settings))
        if not file.exists():
            if (self.folder / ROWS).exists():
                raise EvaluationError(f"{self.folder} holds outcomes without their settings: choose another --to")
            write_atomically(file, json.dumps(settings, indent=1) + "\n")
            return
        try:
            stored = dict(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as cause:
            raise EvaluationError(f"{file} is damaged ({cause}): remove the folder, or choose another --to") from cause
        differences = _setting_differences(stored, settings)
        if differences:
            raise EvaluationError(
                f"{self.folder} holds a run with other settings: {'; '.join(differences)}; "
                "choose another --to, or remove that folder"
            )
        entries = {name: {**stored.get(name, {}), **settings[name]} for name in _SETTINGS_BY_NAME if name in settings}
        write_atomically(file, json.dumps({**stored, **settings, **entries}, indent=1) + "\n")

    def _read_outcomes(self) -> None:
        file = self.folder / ROWS
        if not file.exists():
            return
        raw = file.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]  # a last line without an end was being written when the run was killed
        for number, line in enumerate(whole.split(b"\n"), start=1):
            try:
                if not line:
                    continue
                row = json.loads(line)
                self._outcomes[(row["set"], row["system"], row["question_id"])] = parse_dataclass(QuestionOutcome, row)
            except (ValueError, KeyError, TypeError) as cause:
                raise EvaluationError(
                    f"{file}, line {number}, is damaged ({cause}): remove the line, or remove the folder to start again"
                ) from cause
        if len(whole) < len(raw):
            with file.open("r+b") as opened:
                opened.truncate(len(whole))


def write_atomically(file: Path, text: str) -> None:
    """Write a text file so that an interruption leaves the old file or the new one."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)


def _setting_differences(stored: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Return every setting in which two runs differ, with both values."""
    differences = [
        f"{name} {_short(stored.get(name))}, now {_short(settings.get(name))}"
        for name in sorted((settings.keys() | stored.keys()) - {*_SETTINGS_BY_NAME, *_SCOPE_SETTINGS})
        if settings.get(name) != stored.get(name)
    ]
    for entry, message in _SETTINGS_BY_NAME.items():
        before, now = stored.get(entry, {}), settings.get(entry, {})
        differences += [
            message.format(name) for name in sorted(before.keys() & now.keys()) if before[name] != now[name]
        ]
    return differences


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"
