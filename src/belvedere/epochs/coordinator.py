"""The coordinator: chooses what the next epoch does, has it run, commits it. It holds no data.

    recover   an open intent is run again as it is
    changes   everything logged since the last epoch, at most `max_rows` operations
    load      the next rows of a base table for views that are being built; takes turns with changes
    clean     drop what dropped views left, collect old versions, trim the log

The store's ledger decides what is true; after a crash a new coordinator continues from there (rules
R4, R7).
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from belvedere.catalog.definitions import LOADING, ViewDefinition, ViewStatus
from belvedere.catalog.loading import followed_tables
from belvedere.catalog.pins import oldest_pin
from belvedere.catalog.state import CatalogState, Head, read_head
from belvedere.epochs.commits import commit
from belvedere.epochs.garbage import garbage_removed, remove_dropped
from belvedere.epochs.intent import CHANGES, LOAD, Intent, Load, engines
from belvedere.epochs.intents import Choice, Decide, begin
from belvedere.epochs.lease import LEASE_SECONDS, Lease, release, renew, take_lease
from belvedere.epochs.loads import Bound, next_step
from belvedere.epochs.manager import Ack
from belvedere.epochs.rules import Rules
from belvedere.errors import LeaseLost, PipelineError, Stale
from belvedere.stores.base import Store
from belvedere.types import Epoch, Position

_TRIM_BYTES = 256 << 20  # of growth after which the log is trimmed, however few operations it has
_CLEANING = 0.2  # seconds after an epoch for removing what was dropped
# of one epoch by one coordinator; a late attempt of another one can make a few of them abort
_ATTEMPTS = 20


class Runner(Protocol):
    """Runs the attempt or attempts of an intent somewhere and returns one ack per view manager and
    level.
    """

    def run(self, intent: Intent) -> list[Ack]: ...


@dataclass(frozen=True, slots=True)
class Settings:
    max_rows: int = 1_000_000  # operations per epoch
    load_rows: int = 500_000  # rows per loading step
    # of what an epoch or a loading step reads; a worker needs several times as much
    max_bytes: int = 128 << 20
    history: int = 4  # committed epochs that can still be read
    trim_after: int = 200_000  # operations behind the committed vector before the log is trimmed

    def __post_init__(self) -> None:
        for name, value in (("max_rows", self.max_rows), ("load_rows", self.load_rows)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise PipelineError(
                    f"{name} is {value!r}, but an epoch has at least one row: use 1 or more, or"
                    " leave it out"
                )


@dataclass(frozen=True, slots=True)
class EpochReport:
    """What one epoch did, for users and metrics."""

    epoch: Epoch
    kind: str
    operations: int
    changes: int
    seconds: float
    stages: dict[str, float]
    written: dict[str, int]
    high: dict[str, Position]


@dataclass(slots=True)
class Coordinator:
    store: Store
    runner: Runner
    settings: Settings = field(default_factory=Settings)
    rules: Rules = field(default_factory=Rules)
    now: Callable[[], float] = time.time
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    lease: Lease | None = None
    _loaded_last: bool = False
    # the end of the log then, by group
    _first_seen: dict[int, dict[str, Position]] = field(default_factory=dict)
    _trimmed: int = 0
    _used: int = 0  # bytes of base tables and log when it was trimmed

    def acquire(self) -> bool:
        """Take the lease; False while another coordinator is alive."""
        self.lease = take_lease(self.store, self.owner, self.now)
        return self.lease is not None

    def release(self) -> None:
        if self.lease is not None:
            release(self.store, self.lease)
            self.lease = None

    def step(
        self, limit: dict[str, Position] | None = None, decide: Decide | None = None
    ) -> EpochReport | None:
        """Run one epoch; None if there is nothing to do (up to `limit`, if given).

        `decide` may choose what it does.
        """
        lease = self._held()
        choose = decide or (lambda *state: self._choose(limit, *state))
        intent = begin(self.store, lease, choose, self.rules, self.now())
        if intent is None:
            self._clean(lease)
            return None
        began = time.perf_counter()
        with _Heartbeat(self.store, lease, self.now):
            acks = [] if intent.is_empty else self._run(intent)
        ran = time.perf_counter()
        manifest = commit(self.store, lease, intent, acks, self.rules, self.now())
        committed = time.perf_counter()
        self._loaded_last = intent.kind == LOAD
        self._clean(lease)
        stages = {**manifest["seconds"], "job": ran - began, "commit": committed - ran}
        return _report(intent, manifest, time.perf_counter() - began, stages)

    def _run(self, intent: Intent) -> list[Ack]:
        """Run the job; an attempt that met its own future is run again while the epoch is still
        ours.
        """
        if intent.engines != engines():
            raise PipelineError(
                f"epoch {intent.epoch} was begun with {intent.engines}, here is {engines()}: finish"
                " it with those versions"
            )
        for _ in range(_ATTEMPTS):
            try:
                return self.runner.run(intent)
            except Stale as stale:
                if self.store.catalog.read(read_head).epoch >= intent.epoch:
                    raise LeaseLost(
                        f"epoch {intent.epoch} was committed by another coordinator"
                    ) from None
                renew(self.store, self._held(), self.now())
                reason = stale
        raise PipelineError(
            f"epoch {intent.epoch} cannot be run, its attempts keep aborting: {reason}"
        ) from reason

    def _choose(
        self, limit: dict[str, Position] | None, state: CatalogState, active: list[ViewDefinition]
    ) -> Choice | None:
        head, status = state.head, state.status
        loading = sorted(
            (v for v in active if status[v.id].state == LOADING),
            key=lambda v: (status[v.id].group, v.id),
        )
        high = (
            self._cut(head, None if loading else limit)
            if followed_tables(state, active)
            else self._end(head)
        )
        waiting = high != head.vector
        # they take turns
        if loading and not (
            waiting and (self._loaded_last or self._comes_first(head, status[loading[0].id]))
        ):
            return Choice(
                LOAD, head.vector, self._next_load(loading[0], status[loading[0].id], head.epoch)
            )
        return Choice(CHANGES, high) if waiting else None

    def _comes_first(self, head: Head, status: ViewStatus) -> bool:
        """Whether changes come before loading: views that have not begun do not need what was
        logged before they were first seen.
        """
        if status.marks:
            return False
        seen = self._first_seen.setdefault(status.group, self.store.base.end())
        return any(head.vector.get(stream, 0) < position for stream, position in seen.items())

    def _end(self, head: Head) -> dict[str, Position]:
        """Nobody needs the log yet: everything before its end will be loaded
        from the base table.
        """
        end = self.store.base.end()
        return end if any(end[s] != head.vector.get(s, 0) for s in end) else head.vector

    def _cut(self, head: Head, limit: dict[str, Position] | None) -> dict[str, Position]:
        streams = self.store.base.streams
        high = {s: head.vector.get(s, 0) for s in streams}
        left = self.settings.max_rows
        for stream in streams:
            if left <= 0 or (limit is not None and high[stream] >= limit.get(stream, 0)):
                continue
            end = self.store.base.cut(
                stream, high[stream], left, self.settings.max_bytes // len(streams)
            )
            left -= end - high[stream]
            high[stream] = end
        return high if any(high[s] != head.vector.get(s, 0) for s in high) else head.vector

    def _next_load(self, view: ViewDefinition, status: ViewStatus, epoch: Epoch) -> Load:
        """The next rows of the first origin that is not exhausted."""
        origin = next(n for n in view.nodes if n.id == status.next_origin)
        low = status.marks.get(origin.id)
        after = b"" if low is None else bytes.fromhex(low) + b"\xff"
        high, rows = next_step(
            self.store,
            origin,
            epoch,
            after,
            Bound(self.settings.load_rows, self.settings.max_bytes),
        )
        self.store.rest()  # the rows that were counted are read by tasks, not here
        return Load(
            status.group,
            origin.id,
            low,
            None if high is None else high.hex(),
            not status.marks,
            rows,
        )

    def _clean(self, lease: Lease) -> None:
        self._remove(remove_dropped(self.store, lease, self.now()))
        head = self.store.catalog.read(read_head)
        pinned = oldest_pin(self.store, self.now())
        keep = min(
            head.epoch - self.settings.history, head.epoch if pinned is None else pinned.epoch
        )
        if keep > 0:
            for slot in range(self.store.state.slots):
                # in steps, as each is a transaction
                if self.store.state.status(slot).history_floor + self.settings.history <= keep:
                    self.store.state.collect(slot, keep)
        self._trim(head.vector if pinned is None else pinned.vector)

    def _remove(self, tables: list[int]) -> None:
        """What dropped views and tables left, a little of it after each epoch, so that the next one
        does not wait.
        """
        deadline = time.monotonic() + _CLEANING
        gone: list[int] = []
        for table in tables:
            if not self._dropped(table, deadline):
                break
            gone.append(table)
            if time.monotonic() > deadline:
                break
        if gone:
            garbage_removed(self.store, gone)
        self.store.base.reclaim(max(0.0, deadline - time.monotonic()))

    def _dropped(self, table: int, deadline: float) -> bool:
        """Whether nothing of a state table is left.

        At least a step is taken, so that it comes to an end on any disk.
        """
        state = self.store.state
        return all(
            state.drop(slot, table, max(0.0, deadline - time.monotonic()))
            for slot in range(state.slots)
        )

    def _trim(self, vector: dict[str, Position]) -> None:
        """Drop log that every view has and no reader holds (rule R6), in steps: trimming takes the
        writers' lock.
        """
        total = sum(vector.values())
        used, most = self.store.base.room()
        short = used - self._used >= _TRIM_BYTES or used > most // 2
        if total - self._trimmed >= self.settings.trim_after or (short and total > self._trimmed):
            for stream, position in sorted(vector.items()):
                self.store.base.trim(stream, position)
            self._trimmed, self._used = total, used

    def _held(self) -> Lease:
        if self.lease is None:
            raise LeaseLost("this coordinator has no lease")
        return self.lease


class _Heartbeat:
    """Renews the lease while a long job runs."""

    def __init__(self, store: Store, lease: Lease, now: Callable[[], float]) -> None:
        self.store, self.lease, self.now = store, lease, now
        self.stop = threading.Event()
        self.thread: threading.Thread | None = None

    def __enter__(self) -> None:
        if self.now() > self.lease.expires - LEASE_SECONDS / 2:
            renew(self.store, self.lease, self.now())
        if self.now is time.time:
            self.thread = threading.Thread(target=self._beat, daemon=True)
            self.thread.start()

    def __exit__(self, *_: Any) -> None:
        self.stop.set()

    def _beat(self) -> None:
        while not self.stop.wait(LEASE_SECONDS / 3):
            try:
                renew(self.store, self.lease, self.now())
            except LeaseLost:
                return  # the commit will find out and say so


def _report(
    intent: Intent, manifest: dict[str, Any], seconds: float, stages: dict[str, float]
) -> EpochReport:
    return EpochReport(
        intent.epoch,
        intent.kind,
        intent.operations,
        manifest["changes"],
        seconds,
        stages,
        manifest["written"],
        intent.high,
    )
