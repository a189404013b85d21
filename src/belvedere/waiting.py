"""Waiting for a state of the store that another process brings about: asked again in growing steps,
up to a deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from belvedere.errors import PipelineError

T = TypeVar("T")
_FIRST, _LONGEST = 0.002, 0.05


def check_seconds(name: str, value: float | None) -> None:
    """Refuse what is no time to wait; None is for ever."""
    if value is None:
        return
    if (
        not isinstance(value, float | int)
        or isinstance(value, bool)
        or not 0 <= value <= threading.TIMEOUT_MAX
    ):
        raise PipelineError(
            f"{name} is {value!r}: use a number of seconds, 0 or more, or leave it out"
        )


def wait_until(
    found: Callable[[], T | None], timeout: float | None, stop: threading.Event | None = None
) -> T | None:
    """The first result that is not None; None when the time is over or `stop` is set."""
    deadline = None if timeout is None else time.monotonic() + timeout
    pause, signal = _FIRST, stop or threading.Event()
    while (result := found()) is None:
        if deadline is not None and time.monotonic() >= deadline:
            return None
        if signal.wait(pause):
            return None
        pause = min(pause * 1.5, _LONGEST)
    return result
