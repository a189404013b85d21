"""Waiting for a state of the store that another process brings about: asked again in growing steps, up to a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_FIRST, _LONGEST = 0.002, 0.05


def wait_until(found: Callable[[], T | None], timeout: float | None, stop: threading.Event | None = None) -> T | None:
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
