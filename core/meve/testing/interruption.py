"""Interrupts a change anywhere in it, as a Ctrl-C would: to see that it is made whole, or not at all."""

import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


class Interruption(BaseException):
    """What the interruption tests raise, as a KeyboardInterrupt is raised: anywhere."""


def interrupted(act: Callable[[], object], at: int, error: type[BaseException]) -> list[int]:
    """Raise `error` before the bytecode number `at` of what `act` runs; -1 lets it run to its end.

    Returns:
        Of each line that it ran, NumPy's own left out: the numbers of some of its bytecodes. Where to interrupt next.
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
