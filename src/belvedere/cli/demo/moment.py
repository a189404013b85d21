"""What the demo shows of one moment, read from the store as any other process could."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from decimal import Decimal

from belvedere.catalog.definitions import LIVE
from belvedere.cli.demo.shop import REGIONS
from belvedere.database import Database
from belvedere.status import Status
from belvedere.types import Row

_SPAN = 2.0  # seconds over which a rate is taken


@dataclass(frozen=True, slots=True)
class Moment:
    """`done` is the share of the streaming time that is over."""

    phase: str
    done: float
    status: Status
    rows: dict[str, int]
    revenue: tuple[Row, ...]
    written: float  # operations per second
    maintained: float
    history: tuple[tuple[float, float], ...]  # rates before, oldest first


class Watch:
    """Takes moments, and rates between them."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._points: deque[tuple[float, int, int]] = deque()
        self._history: deque[tuple[float, float]] = deque(maxlen=40)
        self._sampled = 0.0

    def moment(self, phase: str, done: float = 0.0) -> Moment:
        status = self._db.status()
        now = time.monotonic()
        self._points.append((now, status.written, status.committed))
        while len(self._points) > 2 and now - self._points[1][0] > _SPAN:
            self._points.popleft()
        began, written, committed = self._points[0]
        span = max(now - began, 1e-3)
        rates = ((status.written - written) / span, (status.committed - committed) / span)
        if now - self._sampled >= 0.5:
            self._sampled = now
            self._history.append(rates)
        return Moment(
            phase, done, status, self._rows(), self._revenue(status), *rates, tuple(self._history)
        )

    def _rows(self) -> dict[str, int]:
        """Records of the views' tables: counted, not read."""
        store, state = self._db.store, self._db.state()
        slots = range(store.state.slots)
        return {
            v.name: sum(store.state.count(slot, v.planned.sink.table)[0] for slot in slots)
            for v in state.views.values()
            if v.bound
        }

    def _revenue(self, status: Status) -> tuple[Row, ...]:
        if not any(v.name == "revenue" and v.state == LIVE for v in status.views):
            return ()
        view = self._db.view("revenue")
        empty = {"orders": 0, "revenue": Decimal(0), "average": Decimal(0)}
        return tuple(view.get(region) or {"region": region, **empty} for region in REGIONS)
