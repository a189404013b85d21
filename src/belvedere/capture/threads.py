"""A thread for each source, and one for each view that an algorithm keeps, beside the pipeline, in
the process that has the lease. What goes wrong with one stops neither the pipeline nor others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeAlias

from belvedere.capture.condition import FOLLOWING, IDLE, Condition, note_condition
from belvedere.capture.follower import Follower
from belvedere.capture.worker import POLL, Worker
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.errors import SourceError
from belvedere.readers.cut import CatalogCache
from belvedere.sources.base import Source
from belvedere.stores.base import Store
from belvedere.warehouse.keeping import AskSource, Keeping, OpenFor

Connect: TypeAlias = Callable[[SourceDefinition], Source]

_log = logging.getLogger("belvedere")
_LAG_EVERY = 5.0  # seconds between two questions about the lag


class Capture:
    """Follows all sources while `holds` says that this process has the lease."""

    def __init__(
        self,
        store: Store,
        connect: Connect,
        open_for: OpenFor,
        holds: Callable[[], bool],
        ask_far: AskSource | None = None,
    ) -> None:
        self._store, self._connect, self._holds = store, connect, holds
        self._open_for, self._ask_far = open_for, ask_far
        self._cache = CatalogCache(store)
        self._threads: dict[int, Worker] = {}

    def tend(self) -> None:
        """Have a thread for every source and every such view; cheap, to be called often."""
        state = self._cache.state()
        sources = {s.id: s for s in state.sources.values() if not s.dropping}
        kept = {t.id: t for t in state.joined() if t.id not in state.dropping}
        for number in self._threads.keys() - sources.keys() - kept.keys():
            self._threads.pop(number).stop()
        for number in sources.keys() - self._threads.keys():
            self._begin(
                number, _Following(self._store, sources[number], self._connect, self._holds)
            )
        for number in kept.keys() - self._threads.keys():
            of, holds = (self._store, kept[number], self._open_for), self._holds
            self._begin(number, Keeping(*of, holds, self._ask_far))

    def _begin(self, number: int, worker: Worker) -> None:
        self._threads[number] = worker
        worker.start()

    def stop(self) -> None:
        """Returns when nobody follows any more."""
        threads, self._threads = list(self._threads.values()), {}
        for thread in threads:
            thread.ending.set()
        for thread in threads:
            thread.stop()


class _Following(Worker):
    """One source's thread."""

    def __init__(
        self,
        store: Store,
        definition: SourceDefinition,
        connect: Connect,
        holds: Callable[[], bool],
    ) -> None:
        super().__init__(store, f"source {definition.name}", holds)
        self._definition, self._connect = definition, connect
        self._follower: Follower | None = None
        self._asked_lag = 0.0

    def _step(self) -> None:
        if self._follower is None:
            source = self._connect(self._definition)
            self._follower = Follower(self._store, self._definition, source, self.ending)
        is_followed = self._follower.step(POLL)
        self._note(FOLLOWING if is_followed else IDLE)
        if not is_followed:
            self.ending.wait(POLL)

    def _note(self, state: str) -> None:
        """That all is well, when that is news; how far behind we are, from time to time."""
        is_news = self._noted is None or self._noted.state != state
        if self._noted is not None and self._noted.is_wrong:
            _log.info("source %s: all is well again", self._definition.name)
        if not is_news and time.monotonic() - self._asked_lag < _LAG_EVERY:
            return
        self._asked_lag = time.monotonic()
        found = Condition(state, time.time())
        if state == FOLLOWING and self._follower is not None:
            lag = self._connect(self._definition).lag(self._follower.reached)
            found = Condition(state, time.time(), "", lag.bytes, lag.kept_bytes, lag.note)
        if is_news or _measures(found) != _measures(self._noted):
            self._note_condition(found)
        self._noted = found

    def _note_condition(self, condition: Condition) -> None:
        note_condition(self._store, self._definition.name, condition)

    def _after(self, error: Exception) -> None:
        if self._follower is not None:
            self._follower.close()
        if not isinstance(error, SourceError):
            self._follower = None  # whether its last write is there is not known

    def _let_go(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None


def _measures(condition: Condition | None) -> tuple[object, ...]:
    if condition is None:
        return ()
    return condition.state, condition.lag_bytes, condition.kept_bytes, condition.note
