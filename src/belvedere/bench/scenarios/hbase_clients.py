"""HBase, as its clients see it: what capture and views cost a writer, and when a put is visible."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from belvedere.bench.hbase_results import HBaseFreshness, HBaseWrites
from belvedere.bench.scenarios.freshness import p50_ms
from belvedere.bench.scenarios.hbase_database import (
    FAMILY,
    TASKS,
    BareClient,
    HBaseDatabase,
    fresh,
    views_of,
)
from belvedere.bench.scenarios.settings import Settings
from belvedere.bench.views import BASE_COLUMNS, ten
from belvedere.database import Database
from belvedere.errors import Timeout
from belvedere.stores.hbase.local import Cluster, create_table
from belvedere.waiting import wait_until

_CALL = 1_000  # rows in a call, where not one by one
_SINGLE = 50  # of so many puts one is put alone
_GROUP = "x000000"  # of the first row that the bare client puts


@dataclass(frozen=True, slots=True)
class _Way:
    """A table that is written; views are on it, or it is none of ours."""

    table: str
    views: int
    captured: bool = True


_WAYS = (_Way("bare", 0, False), _Way("r0", 0), _Way("r1", 1), _Way("r10", 10))


def writes(settings: Settings, made: Cluster) -> tuple[HBaseWrites, ...]:
    """All tables in turns: first while no epoch runs, then while a pipeline keeps the views."""
    with fresh(made, "writes", ()) as database:
        database.use_tasks(TASKS, fixed=None)
        for way in _WAYS:
            _create(database, way)
        database.db.catch_up()
        still = _turns(settings, database, running=False)
        database.db.catch_up()
        with _running(database):
            return (*still, *_turns(settings, database, running=True))


def _create(database: HBaseDatabase, way: _Way) -> None:
    name = database.users(way.table)
    create_table(database.url, name, FAMILY)
    if not way.captured:
        return
    database.db.sql(
        f"CREATE TABLE {way.table} ({BASE_COLUMNS})"
        f" USING hbase OPTIONS (table = '{name}', family = '{FAMILY}')"
    )
    for view in ten()[1 : 1 + way.views] if way.views == 1 else ten()[: way.views]:
        select = view.select.replace("FROM r", f"FROM {way.table}")
        database.db.sql(replace(view, name=f"{way.table}_{view.name}", select=select).create)


def _turns(settings: Settings, database: HBaseDatabase, running: bool) -> list[HBaseWrites]:
    bare = BareClient(database)
    found: dict[_Way, list[tuple[float, float]]] = {way: [] for way in _WAYS}
    for number in range(settings.hbase_rounds + 1):
        for way in _WAYS:
            prefix = f"{running:d}{number:03d}"
            found[way].append(_one(settings, database, bare, way, prefix))
            if running:
                database.db.catch_up()  # the next turn does not pay for this one
    return [_median(way, running, turns[1:]) for way, turns in found.items()]  # the first warms up


def _one(
    settings: Settings, database: HBaseDatabase, bare: BareClient, way: _Way, prefix: str
) -> tuple[float, float]:
    """Puts per second in calls of many, and the median of single ones in ms."""
    name, puts = database.users(way.table), settings.hbase_puts
    seconds = sum(bare.puts(name, f"{prefix}m", puts, _CALL))
    single = bare.puts(name, f"{prefix}s", max(1, puts // _SINGLE), 1)
    return puts / seconds, p50_ms(single)


def _median(way: _Way, running: bool, turns: list[tuple[float, float]]) -> HBaseWrites:
    rate, single = (statistics.median(side) for side in zip(*turns, strict=True))
    return HBaseWrites(way.views, way.captured, running, len(turns), rate, single)


def freshness(settings: Settings, made: Cluster) -> HBaseFreshness:
    """The clock starts when HBase has acknowledged a put of a client of its own."""
    with fresh(made, "freshness", views_of("V2")) as database:
        database.use_tasks(TASKS, fixed=None)
        probe = _Probe(settings, database, BareClient(database))
        for _ in range(settings.probes):
            probe.by_catch_up()  # the first ones warm up
        catch_up = [probe.by_catch_up() for _ in range(settings.probes)]
        barrier = [_seconds_of(database.db.store.base.barrier) for _ in range(settings.probes)]
        with _running(database):
            polling = [probe.by_polling() for _ in range(settings.probes)]
            session = [probe.by_session() for _ in range(settings.probes)]
        view = database.db.view("V2")
        get = [_seconds_of(view.get, _GROUP) for _ in range(10 * settings.probes)]
        return HBaseFreshness(
            "V2",
            settings.probes,
            p50_ms(catch_up),
            p50_ms(barrier),
            p50_ms(polling),
            p50_ms(session),
            p50_ms(get),
            database.correct(),
        )


@dataclass(slots=True)
class _Probe:
    """Puts one row after the other into the same group, and looks for them in V2."""

    settings: Settings
    database: HBaseDatabase
    bare: BareClient
    rows: int = 0

    def by_catch_up(self) -> float:
        began = self._put()
        self.database.db.catch_up()
        assert self._count(self.database.db) == self.rows
        return time.perf_counter() - began

    def by_polling(self) -> float:
        began = self._put()

        def seen() -> bool | None:
            return self._count(self.database.db) == self.rows or None

        if wait_until(seen, self.settings.timeout) is None:
            raise Timeout("a put is not in the view: is the pipeline running?")
        return time.perf_counter() - began

    def by_session(self) -> float:
        with self.database.db.session(self.settings.timeout) as session:
            began = self._put()
            session.wrote()
            assert self._count(session) == self.rows
            return time.perf_counter() - began

    def _put(self) -> float:
        self.bare.puts(self.database.users("r"), f"p{self.rows:06d}", 1, 1)
        self.rows += 1
        return time.perf_counter()

    def _count(self, db: Database) -> int:
        row = db.view("V2").get(_GROUP)
        return 0 if row is None else int(row["n"])


def _seconds_of(call: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - began


@contextmanager
def _running(database: HBaseDatabase) -> Iterator[None]:
    handle = database.db.start()
    try:
        yield
    finally:
        handle.stop()
