"""A thread that goes on step by step while this process has the lease. What goes wrong is noted,
and tried again after a pause that grows, or as soon as definitions change.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from belvedere.capture.condition import Condition
from belvedere.errors import BelvedereError, Conflict, Dropped
from belvedere.readers.cut import CatalogCache
from belvedere.stores.base import Store

POLL = 0.2  # seconds; also how long a stop may take
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0

_log = logging.getLogger("belvedere")


class Worker(ABC):
    """`about` is what it works at, for messages. Subclasses call `start` when they are ready."""

    def __init__(self, store: Store, about: str, holds: Callable[[], bool]) -> None:
        self._store, self._about, self._holds = store, about, holds
        self._cache = CatalogCache(store)
        self.ending = threading.Event()
        self._pause = _FIRST_PAUSE
        self._noted: Condition | None = None
        name = f"belvedere-{about.replace(' ', '-')}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def _step(self) -> None:
        """Go on for about POLL seconds; raises whatever goes wrong."""

    @abstractmethod
    def _after(self, error: Exception) -> None:
        """Begin anew with the next step, as far as the error asks for it."""

    @abstractmethod
    def _let_go(self) -> None:
        """Keep nothing open."""

    @abstractmethod
    def _note_condition(self, condition: Condition) -> None: ...

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self.ending.is_set():
            if not self._holds():
                self._let_go()
                self.ending.wait(POLL)
                continue
            try:
                self._step()
                self._pause = _FIRST_PAUSE
            except (Conflict, Dropped):
                self._let_go()  # another one works at it now, or something is gone: look again
                self.ending.wait(POLL)
            except Exception as error:  # whatever it is: others and the pipeline go on
                self._failed(error)
        self._let_go()

    def _failed(self, error: Exception) -> None:
        condition = Condition.of_error(error)
        if self._noted is None or self._noted.message != condition.message:
            trace = None if isinstance(error, BelvedereError) else error
            _log.warning("%s: %s", self._about, condition.message, exc_info=trace)
        self._noted = condition
        self._after(error)
        try:
            self._note_condition(condition)
        except BelvedereError as unnoted:  # a full disk, say; then it is in the log alone
            _log.warning("%s: %s", self._about, unnoted)
        self._rest()

    def _rest(self) -> None:
        """Until it is time to try again, or definitions have changed."""
        deadline, version = time.monotonic() + self._pause, self._version()
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        while time.monotonic() < deadline and self._version() == version and self._holds():
            if self.ending.wait(min(POLL, max(0.0, deadline - time.monotonic()))):
                return

    def _version(self) -> int:
        return self._cache.state().head.version
