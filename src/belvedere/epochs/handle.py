"""A running pipeline: a thread that has one epoch after the other run, until it is stopped."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from belvedere.catalog.state import committed
from belvedere.epochs.coordinator import Coordinator, EpochReport
from belvedere.epochs.standby import Standby, Takeover
from belvedere.errors import BelvedereError, LeaseLost, PipelineError, Stale, Timeout
from belvedere.stores.base import Store
from belvedere.types import Position, Vector
from belvedere.waiting import check_seconds, wait_until

_log = logging.getLogger("belvedere")
IDLE = 0.005  # how often a pipeline without work looks for new operations
_UNITS = {"millisecond": 0.001, "ms": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0}
STARTING, IDLING = "starting", "waiting for operations"
AWAITING_LEASE = "waiting for another coordinator to end"
HOLDER_DEADLINE = 60.0  # a process that keeps a store's write lock for longer is ended (rule R10)


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    message: str
    is_active: bool
    is_waiting: bool


def interval(trigger: str | float | None) -> str | float | None:
    """`"available_now"`, nothing, or an interval: seconds, or text such as `"500 milliseconds"` or
    `"2 minutes"`.
    """
    if trigger == "available_now":
        return trigger
    if not isinstance(trigger, str):
        check_seconds("trigger", trigger)
        return trigger
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(\w+?)s?\s*", trigger)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise PipelineError(
            f"trigger {trigger!r} is not understood: use 'available_now', seconds, or text such as"
            " '10 seconds'"
        )
    seconds = float(match[1]) * unit
    check_seconds("trigger", seconds)
    return seconds


class Beside(Protocol):
    """What runs beside epochs: sources are followed."""

    def tend(self) -> None:
        """Called between epochs, often."""

    def stop(self) -> None: ...


class Pipeline:
    """The handle that `start()` returns; as of Structured Streaming's queries, with epochs for
    batches.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        trigger: str | float | None = None,
        beside: Beside | None = None,
        has_arrived: Callable[[], bool] = lambda: True,
    ) -> None:
        """`has_arrived`: whether what was there at the beginning is in the log, for
        "available_now".
        """
        self._coordinator, self._trigger = coordinator, interval(trigger)
        self._beside, self._has_arrived = beside, has_arrived
        self._stop, self._done = threading.Event(), threading.Event()
        self._progress: deque[EpochReport] = deque(maxlen=100)
        self._message = STARTING
        self.takeover: Takeover | None = None  # from whom the lease was taken, if it was waited for
        self._process = os.getpid()
        self._error: BaseException | None = None
        self._checked = 0.0
        self._thread = threading.Thread(target=self._run, name="belvedere-pipeline", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<Pipeline of {self._store.url}: {self._message}>"

    @property
    def is_here(self) -> bool:
        """False in a process that was forked from the one in which it runs."""
        return self._process == os.getpid()

    @property
    def status(self) -> PipelineStatus:
        return PipelineStatus(
            self._message, not self._done.is_set(), self._message.startswith("waiting")
        )

    @property
    def last_progress(self) -> EpochReport | None:
        return self._progress[-1] if self._progress else None

    @property
    def recent_progress(self) -> list[EpochReport]:
        return list(self._progress)

    @property
    def exception(self) -> BaseException | None:
        return self._error

    def stop(self, timeout: float = 60.0) -> None:
        """Finish the epoch under way and end; raises what ended the pipeline, if something did, and
        Timeout if it takes longer.
        """
        check_seconds("timeout", timeout)
        self._stop.set()
        if not self.await_termination(timeout):
            raise Timeout(
                f"after {timeout:g} s an epoch is still under way; the pipeline ends after it. Call"
                " stop() again to wait"
            )

    def await_termination(self, timeout: float | None = None) -> bool:
        check_seconds("timeout", timeout)
        if not self.is_here:
            raise PipelineError(
                f"this pipeline runs in process {self._process}, which started it: wait for it, or"
                " stop it, there"
            )
        ended = self._done.wait(timeout)
        if ended and threading.current_thread() is not self._thread:
            # what belongs to a thread goes after its last line; a process that ends in the middle
            # of that is aborted
            self._thread.join()
        if self._error is not None:
            raise PipelineError(f"the pipeline ended: {self._error}") from self._error
        return ended

    def await_position(self, position: Vector | Position, timeout: float | None = None) -> bool:
        """Wait until everything before a position, as a write returns it, is in every view.

        In a store with one stream a number will do.
        """
        check_seconds("timeout", timeout)
        wanted = position if isinstance(position, Vector) else self._vector(position)

        def reached() -> bool | None:
            if self._error is not None:
                raise PipelineError(f"the pipeline ended: {self._error}") from self._error
            return committed(self._store).vector.covers(wanted) or None

        return wait_until(reached, timeout) is True

    def _vector(self, position: Position) -> Vector:
        if not isinstance(position, int) or isinstance(position, bool):
            raise PipelineError(f"{position!r} is no position: wait for what a write returned")
        streams = self._store.base.streams()
        if len(streams) > 1:
            raise PipelineError(
                f"this store has {len(streams)} streams, so {position} says too little: wait for"
                " what the write returned"
            )
        return Vector({streams[0]: position})

    @property
    def _store(self) -> Store:
        return self._coordinator.store

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:  # whatever it is, the handle must tell
            self._error = error
        finally:
            self._end()

    def _loop(self) -> None:
        while not self._stop.is_set():
            if self._coordinator.lease is None and not self._acquired():
                return
            if self._beside is not None:
                self._beside.tend()
            is_all = self._has_arrived()  # before the epoch that takes it
            try:
                report = self._coordinator.step()
            except (LeaseLost, Stale):
                self._coordinator.lease = None
                continue
            if report is not None:
                self._progress.append(report)
                self._message = (
                    f"epoch {report.epoch}: {report.operations} operations in"
                    f" {report.seconds:.3f} s"
                )
            elif self._trigger == "available_now" and is_all:
                return
            else:
                self._message = IDLING
                self._look_after_store()
            pause = self._trigger if isinstance(self._trigger, float | int) else 0.0
            pause = max(pause, IDLE) if report is None else pause
            if pause:
                self._stop.wait(pause)

    def _acquired(self) -> bool:
        if not self._coordinator.acquire():
            self._message = AWAITING_LEASE
            self.takeover = wait_until(Standby(self._coordinator).look, None, self._stop)
            if self.takeover is None:
                return False
        self._message = "running epochs"
        return True

    def _look_after_store(self) -> None:
        if time.monotonic() - self._checked < 1.0:
            return
        self._checked = time.monotonic()
        for done in self._store.look_after(HOLDER_DEADLINE):
            _log.warning("%s: %s", self._store.url, done)

    def _end(self) -> None:
        if self._beside is not None:
            self._beside.stop()
        self._message = "stopped" if self._error is None else f"failed: {self._error}"
        try:
            self._coordinator.release()
        except BelvedereError as error:
            self._error = self._error or error
        self._done.set()
