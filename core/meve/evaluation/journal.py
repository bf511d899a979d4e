"""What a run has done so far, on disk, so that an interrupted one goes on where it stopped."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from meve.errors import EvaluationError
from meve.evaluation.outcome import Outcome

SCOPE = ("peers", "questions", "peer_questions")
"""What decides how much is asked, and not what comes out: a run may go on with more of it, or less."""
EACH = {"sets": "the set {} of other data", "peer_code": "the peer {} of other code"}
"""Settings that have an entry for each set or peer: of those that two runs share, it must be the same."""
SETTINGS, ROWS, LOCK = "settings.json", "outcomes.jsonl", ".lock"


class Journal:
    """One line an outcome, written as soon as it is there, beside the settings that they were got with.

    A later run may ask more in the same folder: other sets, peers, or more questions. Whatever else decides what comes
    out must be the same.

    Raises:
        EvaluationError: the folder holds a run with other settings, or something else under these names.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self._done: dict[tuple[str, str, str], Outcome] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
            with ExitStack() as undo:
                undo.callback(self._lock.close)
                self._agree(dict(settings))
                self._read()
                self._file = (folder / ROWS).open("a", encoding="utf-8")
                undo.pop_all()
        except OSError as cause:
            raise EvaluationError(f"{folder} can't be used for results: {cause.strerror or cause}") from cause

    def close(self) -> None:
        """Close the file, and let others in."""
        self._file.close()
        self._lock.close()

    def get(self, set_name: str, system: str, question_id: str) -> Outcome | None:
        """An outcome that is there already."""
        return self._done.get((set_name, system, question_id))

    def put(self, set_name: str, system: str, outcome: Outcome) -> None:
        """Keep one outcome."""
        line = json.dumps({"set": set_name, "system": system, **outcome.to_dict()})
        self._file.write(line + "\n")
        self._file.flush()
        self._done[(set_name, system, outcome.question_id)] = outcome

    def __len__(self) -> int:
        """How many outcomes there are."""
        return len(self._done)

    def _locked(self) -> IO[bytes]:
        """A file that this run alone has locked; the system unlocks it, whatever becomes of the process."""
        file = (self.folder / LOCK).open("wb")
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on Windows
            pass
        except OSError as cause:
            file.close()
            raise EvaluationError(f"another run is writing to {self.folder}: wait, or give another --to") from cause
        return file

    def _agree(self, settings: dict[str, Any]) -> None:
        file = self.folder / SETTINGS
        wanted = json.loads(json.dumps(settings))
        if not file.exists():
            if (self.folder / ROWS).exists():
                raise EvaluationError(f"{self.folder} holds outcomes without their settings: give another --to")
            self._write(file, wanted)
            return
        try:
            kept = dict(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as cause:
            raise EvaluationError(f"{file} is damaged ({cause}): remove the folder, or give another --to") from cause
        differing = _differing(kept, wanted)
        if differing:
            raise EvaluationError(
                f"{self.folder} holds a run with other settings: {'; '.join(differing)}: give another --to, or remove "
                "that folder"
            )
        self._write(
            file, {**kept, **wanted, **{e: {**kept.get(e, {}), **wanted.get(e, {})} for e in EACH if e in wanted}}
        )

    def _write(self, file: Path, settings: Mapping[str, Any]) -> None:
        fresh = file.with_name(f"{SETTINGS}.new")
        fresh.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        fresh.replace(file)

    def _read(self) -> None:
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
                self._done[(row["set"], row["system"], row["question_id"])] = Outcome.from_dict(row)
            except (ValueError, KeyError, TypeError) as cause:
                raise EvaluationError(
                    f"{file}, line {number}, is damaged ({cause}): remove the line, or the folder to begin again"
                ) from cause
        if len(whole) < len(raw):
            with file.open("r+b") as opened:
                opened.truncate(len(whole))


def _differing(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Every setting in which two runs differ, with both values; of sets and peers, those that both have."""
    found = [
        f"{name} {_short(kept.get(name))}, now {_short(wanted.get(name))}"
        for name in sorted((wanted.keys() | kept.keys()) - {*EACH, *SCOPE})
        if wanted.get(name) != kept.get(name)
    ]
    for entry, said in EACH.items():
        before, now = kept.get(entry, {}), wanted.get(entry, {})
        found += [said.format(name) for name in sorted(before.keys() & now.keys()) if before[name] != now[name]]
    return found


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"
