"""Interrupts a change at any bytecode, as Ctrl-C would, to test that it takes effect fully or not at all."""

import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


class Interruption(BaseException):
    """The exception of the interruption tests; like KeyboardInterrupt it isn't an `Exception`."""


def run_interrupted(act: Callable[[], object], at: int, error: type[BaseException]) -> list[int]:
    """Run `act` and raise `error` before bytecode number `at`; -1 lets it finish.

    Returns:
        Bytecode numbers at which to interrupt next: up to three for each line that ran, those of NumPy left out.
    """
    seen: dict[tuple[CodeType, int | None], list[int]] = {}
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - as sys.settrace wants it
        nonlocal count
        if str(frame.f_globals.get("__name__")).startswith(("numpy", "importlib", "_frozen")):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            seen.setdefault((frame.f_code, frame.f_lineno), []).append(count)
            count += 1
            if count - 1 == at:
                raise error
        return trace

    before, collecting = sys.gettrace(), gc.isenabled()
    gc.disable()  # it would run other people's functions in between
    sys.settrace(trace)
    try:
        act()
    except error:
        pass
    finally:
        sys.settrace(before)
        if collecting:
            gc.enable()
    return sorted({place for places in seen.values() for place in (places[0], places[len(places) // 2], places[-1])})
