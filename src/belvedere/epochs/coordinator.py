"""The coordinator: chooses what the next epoch does, has it run, commits it. It holds no data.

    recover   an open intent is run again as it is
    changes   everything logged since the last epoch, at most `max_rows` operations
    load      the next rows of a base table for views that are being built; takes turns with changes
    clean     drop what dropped views left, collect old versions, trim the log

The store's ledger decides what is true; after a crash a new coordinator continues from there (rules
R4, R7).
"""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from belvedere.catalog import layout
from belvedere.catalog.filling import drop_forgotten
from belvedere.catalog.head import Head
from belvedere.catalog.history import rows_kept
from belvedere.catalog.pins import oldest_pin
from belvedere.catalog.state import read_floor, read_head
from belvedere.epochs.adoption import adopt_tables
from belvedere.epochs.choose import Chooser
from belvedere.epochs.commits import commit, raise_floor
from belvedere.epochs.garbage import garbage_removed, remove_dropped
from belvedere.epochs.intent import LOAD, Intent, engines
from belvedere.epochs.intents import Decide, begin, definitions
from belvedere.epochs.lease import LEASE_SECONDS, Lease, release, renew, take_lease
from belvedere.epochs.manager import Ack
from belvedere.epochs.rules import Rules
from belvedere.epochs.settings import Settings
from belvedere.epochs.shapes import table_shapes
from belvedere.errors import LeaseLost, PipelineError, Stale
from belvedere.stores.base import Store
from belvedere.types import Epoch, Vector

_TRIM_BYTES = 256 << 20  # of growth after which the log is trimmed, however few operations it has
_ROOM = 0.75  # of what base rows and log may take; beyond, no history is kept for readers
_CLEANING = 0.2  # seconds after an epoch for removing what was dropped
# of one epoch by one coordinator; a late attempt of another one can make a few of them abort
_ATTEMPTS = 20


class Runner(Protocol):
    """Runs the attempt or attempts of an intent somewhere and returns one ack per view manager and
    level.
    """

    def run(self, intent: Intent) -> list[Ack]: ...


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
    high: Vector


@dataclass(slots=True)
class Coordinator:
    store: Store
    runner: Runner
    settings: Settings = field(default_factory=Settings)
    rules: Rules = field(default_factory=Rules)
    now: Callable[[], float] = time.time
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    lease: Lease | None = None
    # called after each commit, and with a new lease, before anything is cleaned
    recording: Callable[[], None] | None = None
    _chooser: Chooser = field(init=False)
    _created: tuple[tuple[int, ...], ...] = ()  # the views and tables whose tables are there
    _collected: Epoch = 0
    _trimmed: int = 0
    _used: int = 0  # bytes of base tables and log when it was trimmed

    def __post_init__(self) -> None:
        self._chooser = Chooser(self.store, self.settings, self.rules)

    def acquire(self) -> bool:
        """Take the lease; False while another coordinator is alive."""
        self.lease = take_lease(self.store, self.owner, self.now)
        if self.lease is not None and self.recording is not None:
            self.recording()
        return self.lease is not None

    def release(self) -> None:
        if self.lease is not None:
            release(self.store, self.lease)
            self.lease = None

    def step(self, limit: Vector | None = None, decide: Decide | None = None) -> EpochReport | None:
        """Run one epoch; None if there is nothing to do (up to `limit`, if given).

        `decide` may choose what it does.
        """
        lease = self._held()
        if adopted := self.store.catalog.read(layout.ADOPTIONS.all):
            with _Heartbeat(self.store, lease, self.now):
                adopt_tables(self.store, lease, self.runner, adopted)
        choose = decide or partial(self._chooser.choose, limit=limit)
        began = time.perf_counter()
        intent = begin(self.store, lease, choose, self.rules, self.now())
        if intent is None:
            self._clean(lease)
            self._stay(lease)
            return None
        chosen = time.perf_counter()
        with _Heartbeat(self.store, lease, self.now):
            acks = [] if intent.is_empty else self._run(intent)
        ran = time.perf_counter()
        manifest = self._commit(lease, intent, acks)
        committed = time.perf_counter()
        self._chooser.loaded_last = intent.kind == LOAD
        self._clean(lease)
        stages = {
            **manifest["seconds"],
            "choose": chosen - began,
            "job": ran - chosen,
            "commit": committed - ran,
        }
        return _report(intent, manifest, time.perf_counter() - began, stages)

    def _commit(self, lease: Lease, intent: Intent, acks: list[Ack]) -> dict[str, Any]:
        rules, history, is_short = self.rules, self.settings.history, self._is_short()
        manifest = commit(self.store, lease, intent, acks, rules, self.now(), history, is_short)
        if self.recording is not None:
            self.recording()
        return manifest

    def clean(self) -> None:
        """Remove all that nobody needs any more, between epochs, however long it takes."""
        lease = self._held()
        with self.beating():
            gone = remove_dropped(self.store, lease, self.now())
            for table in gone:
                self._dropped(table, math.inf)
            garbage_removed(self.store, gone)
            drop_forgotten(self.store)
            self.store.base.reclaim(math.inf)
            raise_floor(self.store, lease, self.now())
            head, floor = self.store.catalog.read(lambda t: (read_head(t), read_floor(t)))
            self.store.state.collect(floor)
            self._trim_to(self._held_rows(head))

    def _stay(self, lease: Lease) -> None:
        """A coordinator without work is alive too, and keeps its lease."""
        now = self.now()
        if now > lease.expires - LEASE_SECONDS / 2:
            renew(self.store, lease, now)
            self.lease = replace(lease, expires=now + LEASE_SECONDS)

    def beating(self) -> AbstractContextManager[None]:
        """Keep the lease during something long between epochs."""
        return _Heartbeat(self.store, self._held(), self.now)

    def _create_tables(self, intent: Intent) -> None:
        """Before the first epoch of these views, also of one that a crash left open."""
        named = (intent.views, intent.tables)
        if named != self._created:
            self.store.state.create(table_shapes(*definitions(self.store, intent)))
            self._created = named

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
                self._create_tables(intent)
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

    def _clean(self, lease: Lease) -> None:
        self._remove(remove_dropped(self.store, lease, self.now()))
        head, floor = self.store.catalog.read(lambda t: (read_head(t), read_floor(t)))
        if not self.rules.floor_first:
            floor = head.epoch
        if floor > self._collected:
            self.store.state.collect(floor)
            self._collected = floor
        self._trim(self._held_rows(head))

    def _held_rows(self, head: Head) -> Vector:
        """The log behind this vector is for readers: pins, and those of kept epochs while there is
        room.
        """
        pinned = oldest_pin(self.store, self.now())
        held = head.vector if pinned is None else pinned.vector
        return held if self._is_short() else held.lowest(rows_kept(self.store, head, self.now()))

    def _is_short(self) -> bool:
        """Whether room is so short that kept history has to go; base rows and log are looked at,
        which is where most of it is.
        """
        used, most = self.store.base.room()
        return used > most * _ROOM

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
        drop_forgotten(self.store)
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

    def _trim(self, vector: Vector) -> None:
        """Drop log that every view has and no reader holds (rule R6), in steps: trimming takes the
        writers' lock.
        """
        total = vector.operations
        used, most = self.store.base.room()
        short = used - self._used >= _TRIM_BYTES or used > most // 2
        if total - self._trimmed >= self.settings.trim_after or (short and total > self._trimmed):
            self._trim_to(vector)
            self._trimmed, self._used = total, used

    def _trim_to(self, vector: Vector) -> None:
        for stream, position in sorted(vector.items()):
            self.store.base.trim(stream, position)

    def _held(self) -> Lease:
        if self.lease is None:
            raise LeaseLost("this coordinator has no lease")
        return self.lease


class _Heartbeat(AbstractContextManager[None]):
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
