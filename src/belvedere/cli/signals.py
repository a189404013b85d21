"""SIGINT and SIGTERM as an event: the first asks for a clean end, the
second SIGINT ends at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stop:
    """Set by a signal.

    `take` may be called again: PySpark puts a handler of its own in place when it starts.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def take(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked)

    def _asked(self, number: int, frame: Any) -> None:
        if self._event.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._event.set()

    def wait(self, seconds: float) -> bool:
        return self._event.wait(seconds)

    def is_set(self) -> bool:
        return self._event.is_set()


@contextmanager
def stopping() -> Iterator[Stop]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    stop = Stop()
    stop.take()
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
