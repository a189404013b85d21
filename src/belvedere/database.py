"""A database: tables, views over them, and the pipeline that keeps the views."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from belvedere import statements
from belvedere.errors import LeaseLost, SqlError, Stale, Timeout
from belvedere.pipeline.coordinator import Coordinator, EpochReport, Runner, Settings
from belvedere.pipeline.handle import Pipeline
from belvedere.pipeline.local import LocalRunner
from belvedere.pipeline.repair import repair
from belvedere.pipeline.verify import Verification, verify
from belvedere.readers.cut import CatalogCache
from belvedere.readers.session import Token, await_token
from belvedere.readers.waiting import wait_until
from belvedere.result import Result
from belvedere.sql.dialect import split
from belvedere.status import Status, read_status
from belvedere.stores.registry import open_store
from belvedere.table import Table
from belvedere.types import Position
from belvedere.view import View
from belvedere.views.catalog import CatalogState, Head, read_state
from belvedere.views.definitions import LIVE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Database:
    """Open one with `belvedere.open`. Writers, readers and the pipeline may be different processes at the same time."""

    def __init__(
        self, url: str, spark: SparkSession | None = None, master: str = "local[*]", runner: Runner | None = None, **options: Any
    ) -> None:
        self.store = open_store(url, **options)
        self.master = master
        self._spark, self._runner = spark, runner
        self._cache = CatalogCache(self.store)
        self._pipeline: Pipeline | None = None
        self._token: Token | None = None
        self._timeout = 30.0

    # ---- tables, views, SQL

    def sql(self, text: str) -> Result:
        """Run one statement, or a script of several; the answer is that of the last."""
        answer: Result | None = None
        for statement in split(text):
            answer = statements.execute(self, statement)
        if answer is None:
            raise SqlError("there is no statement in this text")
        return answer

    def table(self, name: str) -> Table:
        return Table(self.store, self.state().table(name), self.wrote if self._token is not None else None)

    def view(self, name: str) -> View:
        return View(self.store, self._cache, name, lambda: self.spark, self.await_session if self._token is not None else None)

    def state(self) -> CatalogState:
        return self._cache.state()

    # ---- keeping views up to date

    @property
    def spark(self) -> SparkSession:
        """The Spark session: the one given, or one of our own, made when it is first needed."""
        if self._spark is None:
            from belvedere.pipeline.spark import session

            self._spark = session(self.master)
        return self._spark

    def catch_up(self, max_rows: int | None = None, timeout: float | None = None) -> list[EpochReport]:
        """Return when everything written so far is in every view, and every requested view is live.

        Runs epochs itself, or waits for the coordinator that is alive. `max_rows` bounds the operations of an epoch.
        """
        target = self.store.base.end()
        reports: list[EpochReport] = []
        coordinator = self._coordinator(max_rows)

        def caught_up() -> bool | None:
            if self._covers(target):
                return True
            if coordinator.acquire():
                reports.extend(self._run_epochs(coordinator, target))
            return self._covers(target) or None

        if wait_until(caught_up, timeout) is None:
            head = Head.from_bytes(self.store.catalog.get_one("head"))
            raise Timeout(f"after {timeout:g} s the views are at {head.vector}, not yet at {target}", reached=head.vector)
        return reports

    def _run_epochs(self, coordinator: Coordinator, target: dict[str, Position]) -> Iterator[EpochReport]:
        try:
            while (report := coordinator.step(target)) is not None:
                yield report
        except (LeaseLost, Stale):
            coordinator.lease = None  # another one took over: wait for it
        finally:
            coordinator.release()

    def _covers(self, target: dict[str, Position]) -> bool:
        state = self.store.catalog.read(read_state)
        vector = state.head.vector
        idle = not any(state.status[v.id].state != LIVE for v in state.definitions())
        return idle and all(vector.get(s, 0) >= p for s, p in target.items())

    def start(self, trigger: str | float | None = None, max_rows: int | None = None) -> Pipeline:
        """Follow the log until `stop()`. `trigger`: "available_now", an interval in seconds, or nothing (as fast as it can)."""
        self._pipeline = Pipeline(self._coordinator(max_rows), trigger)
        return self._pipeline

    def _coordinator(self, max_rows: int | None) -> Coordinator:
        settings = Settings() if max_rows is None else Settings(max_rows=max_rows, load_rows=max_rows)
        if self._runner is None and self.store.url.startswith("memory:"):
            self._runner = LocalRunner(self.store)  # this process's memory cannot be shared with Spark's workers
        return Coordinator(self.store, self._runner or self._spark_runner(), settings)

    def _spark_runner(self) -> Runner:
        from belvedere.pipeline.spark import SparkRunner
        from belvedere.pipeline.width import Width

        self._runner = SparkRunner(self.store, self.spark, Width(tasks=self.spark.sparkContext.defaultParallelism))
        return self._runner

    # ---- sessions

    @contextmanager
    def session(self, timeout: float = 30.0) -> Iterator[Database]:
        """A database whose reads of views contain its own writes; a read that would have to wait longer raises Timeout."""
        inner = Database.__new__(Database)
        inner.__dict__.update(self.__dict__)
        inner._token, inner._timeout = Token(), timeout
        yield inner

    def wrote(self, position: Position) -> None:
        """Note a write of this session."""
        if self._token is not None:
            self._token.wrote(self.store.base.streams[0], position)

    def await_session(self) -> None:
        """Wait until the views contain what this session wrote."""
        if self._token is not None and self._token.positions:
            await_token(self.store, self._token, self._timeout)

    # ---- looking after it

    def verify(self, view: str) -> Verification:
        """Recompute a view with Spark SQL as of the committed epoch, and compare."""
        return verify(self.store, self.spark, view)

    def repair(self, view: str) -> Verification:
        """Correct exactly the rows that `verify` finds wrong, in an epoch of its own; returns what was found."""
        return repair(self._coordinator(None), self.spark, view)

    def status(self) -> Status:
        return read_status(self.store)

    def close(self) -> None:
        """Stop the pipeline of this object, if there is one, and close the store. The Spark session stays."""
        if self._pipeline is not None and self._pipeline.status.is_active:
            self._pipeline.stop()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(url: str | os.PathLike[str], **options: Any) -> Database:
    """Open a database: a directory (the embedded store), `belvedere:PATH`, or `memory:`.

    Options: `spark` (a SparkSession), `master` (for a session of our own), and those of the store, for the
    embedded one `slots`, `map_size` and `max_size`.
    """
    return Database(os.fspath(url), **options)
