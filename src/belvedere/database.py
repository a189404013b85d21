"""A database: tables, views over them, and the pipeline that keeps the views."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from belvedere.catalog.definitions import LIVE
from belvedere.catalog.history import (
    AsOf,
    Consumer,
    Keep,
    consumers,
    drop_consumer,
    keep_history,
)
from belvedere.catalog.soundness import check_sound
from belvedere.catalog.state import CatalogState, check_complete, committed, read_state
from belvedere.connections import Connections, connect, open_for
from belvedere.errors import (
    CatalogError,
    LeaseLost,
    PipelineError,
    SqlError,
    Stale,
    StoreError,
    Timeout,
)
from belvedere.readers.cut import CatalogCache
from belvedere.readers.session import resumed
from belvedere.spark.choices import check_conf, check_master
from belvedere.stores.registry import open_store
from belvedere.table import Table
from belvedere.types import Epoch, Vector
from belvedere.view import View
from belvedere.waiting import check_seconds, wait_until

# SQL and the pipeline are loaded by the calls that need them: a program that reads and writes rows
# starts in a fraction of the time.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from belvedere.capture.arrival import Arrival
    from belvedere.capture.threads import Capture
    from belvedere.epochs.base_check import BaseVerification
    from belvedere.epochs.coordinator import Coordinator, EpochReport, Runner
    from belvedere.epochs.handle import Pipeline
    from belvedere.epochs.settings import Settings
    from belvedere.epochs.verify import Verification
    from belvedere.inspection import Inspection
    from belvedere.prepared import PreparedStatements
    from belvedere.result import Result
    from belvedere.spark.runner import SparkRunner
    from belvedere.status import Status
    from belvedere.stores.embedded.backup import Taken
    from belvedere.transaction import Transaction

_Answer = TypeVar("_Answer")


class Database:
    """Open one with `belvedere.open`.

    Writers, readers and the pipeline may be different processes at the same time.
    """

    _tables: tuple[CatalogState, dict[str, Table]] | None = None  # made for what is in the catalog

    def __init__(
        self,
        url: str,
        spark: SparkSession | None = None,
        master: str = "local[*]",
        spark_conf: Mapping[str, str] | None = None,
        runner: Runner | None = None,
        **options: Any,
    ) -> None:
        check_master(master)
        check_conf(spark_conf or {})
        if spark is not None and spark_conf:
            raise PipelineError(
                "spark_conf is for a session of our own: give the settings to the session that you"
                " pass, or pass none"
            )
        self.store = open_store(url, **options)
        try:
            check_sound(self.store)
        except BaseException:  # whatever it was, nobody gets this store, so nobody would close it
            self.store.close()
            raise
        self.master, self.spark_conf = master, dict(spark_conf or {})
        self._spark, self._runner = spark, runner
        self._cache = CatalogCache(self.store)
        self._pipelines: list[Pipeline] = []
        self.connections = Connections()
        self.prepared: PreparedStatements = {}

    # ---- tables, views, SQL

    def sql(
        self,
        text: str,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        as_of: AsOf | None = None,
    ) -> Result:
        """Run one statement, or a script of several; the answer is that of the last. What stands
        between BEGIN and COMMIT is one transaction, as in `transaction()`.

        `params` are values for the parameters of one statement: a list for `?`, a dict for `:name`.
        `as_of` says as of which epoch, or moment, a query reads.
        """
        from belvedere import statements
        from belvedere.sql.dialect import split
        from belvedere.sql.parameters import check_parameters
        from belvedere.statements.transaction import Conversation

        answer: Result | None = None
        if as_of is None:
            answer = statements.repeat(self, text, params)
        if answer is not None:
            return answer
        values, parts = check_parameters(params), split(text)
        if values is not None and len(parts) > 1:
            raise SqlError(f"parameters are for one statement, and this text has {len(parts)}")
        with Conversation(self) as conversation:
            for statement in parts:
                answer = conversation.run(statement, values, as_of)
        if answer is None:
            raise SqlError("there is no statement in this text")
        return answer

    def table(self, name: str) -> Table:
        state, text = self.state(), _name("table", name)
        if self._tables is None or self._tables[0] is not state:
            self._tables = state, {}
        found = self._tables[1].get(text)
        if found is None:
            definition = state.table(text)
            check_complete(state, definition)
            readable = state.readable(definition)
            found = Table(self.store, readable, self.wrote if self.is_session else None)
            self._tables[1][text] = found
        return found

    def view(self, name: str) -> View:
        before = self.await_session if self.is_session else None
        return View(self.store, self._cache, _name("view", name), lambda: self.spark, before)

    def state(self) -> CatalogState:
        return self._cache.state()

    def committed(self) -> tuple[Epoch, CatalogState]:
        """The committed epoch, and definitions as new as it."""
        _, epoch, state = self._cache.current()
        return epoch, state

    # ---- keeping views up to date

    @property
    def spark(self) -> SparkSession:
        """The Spark session: the one given, or one of our own, made when it is first needed."""
        if self._spark is None:
            from belvedere.spark.session import session

            self._spark = session(self.master, self.spark_conf)
        return self._spark

    def catch_up(
        self, max_rows: int | None = None, timeout: float | None = None
    ) -> list[EpochReport]:
        """Return when everything written so far is in every view, and every requested view is live.

        Runs epochs itself, or waits for the coordinator that is alive. `max_rows` bounds the
        operations of an epoch. After `timeout` seconds no epoch is begun, and if there is something
        left to do, Timeout is raised; with 0, at once. What sources have by now is waited for too;
        if one cannot be followed, its error is raised when all else is in the views.
        """
        settings = _settings(max_rows)
        check_seconds("timeout", timeout)
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        arrival = self._arrival()
        if arrival is not None:
            self._await_arrival(arrival, settings, timeout, deadline)
        error = next(iter(arrival.errors.values()), None) if arrival is not None else None
        reports = self._bring_up(settings, timeout, deadline, error is not None)
        if error is not None:
            raise error
        return reports

    def _bring_up(
        self, settings: Settings, timeout: float | None, deadline: float, is_partial: bool
    ) -> list[EpochReport]:
        """All that is in the log, into the views. `is_partial`: but for views that wait for what
        does not come.
        """
        target = self.store.base.barrier()
        if self._covers(target, is_partial):
            return []
        if timeout == 0:
            raise self._late(timeout, target)
        reports: list[EpochReport] = []
        coordinator = self._coordinator(settings)

        def caught_up() -> bool | None:
            if self._covers(target, is_partial):
                return True
            if coordinator.acquire():
                reports.extend(self._run_epochs(coordinator, target, deadline))
            return self._covers(target, is_partial) or None

        left = None if timeout is None else max(0.0, deadline - time.monotonic())
        if wait_until(caught_up, left) is None:
            raise self._late(timeout or 0, target)
        return reports

    def _arrival(self) -> Arrival | None:
        """What sources have by now; None if none is followed."""
        if not self.state().sources:
            return None
        from belvedere.capture.arrival import Arrival, followed_sources, has_sources

        if not has_sources(self.state()):
            return None
        return Arrival(self.store, self.connections.of, followed_sources(self.state()))

    def _await_arrival(
        self, arrival: Arrival, settings: Settings, timeout: float | None, deadline: float
    ) -> None:
        from belvedere.capture.arrival import await_arrival

        if arrival.is_over():
            return
        coordinator = self._coordinator(settings)
        await_arrival(arrival, self._capture(coordinator), coordinator, timeout, deadline)

    def _capture(self, coordinator: Coordinator) -> Capture:
        """Many values are asked for in tasks of Spark, if epochs run there."""
        from belvedere.capture.threads import Capture

        connect_here, ask = self.connections.of, getattr(self._runner, "ask", None)
        far = None if ask is None else partial(ask, connect)
        return Capture(
            self.store, connect_here, open_for, lambda: coordinator.lease is not None, far
        )

    def _late(self, timeout: float, target: Vector) -> Timeout:
        vector = committed(self.store).vector
        behind = vector.behind(target)
        what = (
            f"{behind:,} operation(s) are not in the views"
            if behind
            else "a view is still being built"
        )
        return Timeout(
            f"after {timeout:g} s {what}: allow more time, or keep a pipeline running",
            reached=vector,
        )

    def _run_epochs(
        self, coordinator: Coordinator, target: Vector, deadline: float
    ) -> Iterator[EpochReport]:
        try:
            while time.monotonic() < deadline and (report := coordinator.step(target)) is not None:
                yield report
        except (LeaseLost, Stale):
            coordinator.lease = None  # another one took over: wait for it
        finally:
            coordinator.release()

    def _covers(self, target: Vector, is_partial: bool = False) -> bool:
        state = self.store.catalog.read(read_state)
        missing = {table for table, vector in state.adopting.items() if vector is None}
        excused = missing if is_partial else set()
        waiting = (v for v in state.definitions() if excused.isdisjoint(v.planned.sources))
        idle = not any(state.status[v.id].state != LIVE for v in waiting)
        return idle and state.head.vector.covers(target)

    def start(
        self,
        trigger: str | float | None = None,
        max_rows: int | None = None,
        history: str | os.PathLike[str] | None = None,
    ) -> Pipeline:
        """Follow the log until `stop()`.

        `trigger`: "available_now", an interval in seconds, or nothing (as fast as it can).
        `history`: a file to which every epoch is appended, for `belvedere check`.
        """
        from belvedere.epochs.handle import Pipeline, interval

        # before Spark is started for them
        settings, checked = _settings(max_rows), interval(trigger)
        self.state()  # of a closed database: not in the thread that would be started
        recording = None
        if history is not None:
            from belvedere.recording import Recording

            recording = Recording(self.store, history)
        coordinator = self._coordinator(settings)
        coordinator.recording = recording
        arrival = self._arrival() if checked == "available_now" else None
        arrived = (lambda: True) if arrival is None else arrival.is_over
        capture = self._capture(coordinator)
        self._pipelines.append(Pipeline(coordinator, checked, capture, arrived))
        return self._pipelines[-1]

    def _coordinator(self, settings: Settings) -> Coordinator:
        from belvedere.epochs.coordinator import Coordinator
        from belvedere.epochs.local import LocalRunner

        if self._runner is None and not self.store.capabilities.shared:
            self._runner = LocalRunner(self.store)
        return Coordinator(self.store, self._runner or self._spark_runner(), settings)

    def _spark_runner(self) -> SparkRunner:
        from belvedere.epochs.width import Width
        from belvedere.spark.runner import SparkRunner

        made = SparkRunner(
            self.store, self.spark, Width(tasks=self.spark.sparkContext.defaultParallelism)
        )
        self._runner = made
        return made

    # ---- transactions

    def transaction(self) -> Transaction:
        """Reads and writes of several tables that belong together: written at the end of the block,
        all of them or, if it raises, none. RowConflict names a row that was read and that somebody
        else has changed meanwhile.
        """
        from belvedere.transaction import Transaction

        return Transaction(self)

    def transact(self, work: Callable[[Transaction], _Answer], retries: int = 100) -> _Answer:
        """Call `work` with a transaction, and again with a new one if somebody else has changed a
        row that it had read; returns what it returned.
        """
        from belvedere.transaction import repeat

        return repeat(self.transaction, work, retries)

    # ---- sessions

    @contextmanager
    def session(self, timeout: float = 30.0, token: str | None = None) -> Iterator[Database]:
        """A database whose reads of views contain its own writes; a read that would have to wait
        longer raises Timeout. With the `token` of a session it goes on where that one was, also in
        another process.
        """
        check_seconds("timeout", timeout)
        from belvedere.session import Session

        yield Session(self, timeout, resumed(self.store, token))

    def token(self) -> str:
        """Of a session: text with which another process sees what this one has written, and nothing
        older than what it has read.
        """
        raise CatalogError("only a session has a token: use that of db.session()")

    @property
    def is_session(self) -> bool:
        """Whether reads of views may have to wait for writes."""
        return False

    def wrote(self, position: Vector | None = None) -> None:
        """Note a write of this session, or of another client of a foreign table or of a source,
        that the next read shall contain.
        """

    def await_session(self) -> None:
        """Wait until the views contain what this session wrote."""

    # ---- looking after it

    def verify(self, view: str) -> Verification:
        """Recompute a view with Spark SQL as of the committed epoch, and compare."""
        from belvedere.holding import verify

        return verify(self, _name("view", view))

    def repair(self, view: str) -> Verification:
        """Correct exactly the rows that `verify` finds wrong, in an epoch of its own; returns what
        was found.
        """
        from belvedere.holding import repair

        return repair(self, _name("view", view))

    def rebuild(self, *views: str) -> tuple[str, ...]:
        """Drop views and build them anew from their tables; so are all views that share something
        with them. For views whose own state is damaged. They can be read again when `catch_up()`
        or a pipeline has built them; returns which.
        """
        from belvedere.catalog.views import rebuild_views

        names = [_name("view", view) for view in views]
        return rebuild_views(self.store, lambda _: names)

    def inspect(self) -> Inspection:
        """Read everything in the database's directory and say what is damaged."""
        from belvedere.inspection import inspect

        return inspect(self.store.url)

    def verify_base(self, table: str) -> BaseVerification:
        """Compare what we have of a table that others write with the table itself: of HBase, or a
        relation of a source, or all that a view with an algorithm has joined; catches up before.
        """
        from belvedere.base_checks import verify_base

        return verify_base(self, _name("table", table))

    def repair_base(self, table: str) -> BaseVerification:
        """Make what we have of such a table, and with it the views, as the table is now; returns
        what was found. For what no log shows: truncation, bulk loads, writes without a log.
        """
        from belvedere.base_checks import repair_base

        return repair_base(self, _name("table", table))

    def backup(
        self, target: str | os.PathLike[str], base: str | os.PathLike[str] | None = None
    ) -> Taken:
        """Copy the whole database, as of one moment, to a new directory, whatever others do
        meanwhile; `belvedere.restore` makes a database of it.

        Runs are linked, not copied, if the directory is on the same file system, or if `base`, an
        earlier backup beside it, has them.
        """
        from belvedere.backups import backup

        return backup(self.store, target, base)

    def keep_history(self, epochs: int = 0, seconds: float = 0.0) -> None:
        """Keep so many epochs, and all that were current in so many seconds, for reads with
        `as_of` and for change feeds, as long as there is room; it counts from the next epoch on.
        """
        keep_history(self.store, Keep(epochs, seconds))

    def consumers(self) -> list[Consumer]:
        """Named readers of change feeds."""
        return self.store.catalog.read(lambda t: list(consumers(t)))

    def drop_consumer(self, name: str) -> None:
        drop_consumer(self.store, _name("consumer", name))

    def status(self) -> Status:
        from belvedere.status import read_status

        return read_status(self.store)

    def close(self) -> None:
        """Stop the pipelines that this object started, and close the store.

        The Spark session stays.

        Raises Timeout, and closes nothing, if an epoch under way takes longer than a minute.
        """
        for pipeline in self._pipelines:
            if pipeline.is_here and pipeline.status.is_active:
                pipeline.stop()
        self.connections.close()
        self.store.close()

    def __repr__(self) -> str:
        return f"<Database {self.store.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _name(kind: str, name: object) -> str:
    if not isinstance(name, str):
        raise CatalogError(f"the name of a {kind} is text: pass a str, not {type(name).__name__}")
    return name


def _settings(max_rows: int | None) -> Settings:
    from belvedere.epochs.settings import Settings

    return Settings() if max_rows is None else Settings(max_rows=max_rows, load_rows=max_rows)


def open(url: str | os.PathLike[str], **options: Any) -> Database:
    """Open a database: a directory (the embedded store), `belvedere:PATH`,
    `hbase://zookeeper:2181/namespace?capture=DIRECTORY`, or `memory:`.

    Options: `spark` (a SparkSession), or `master` and `spark_conf` (settings, as in
    {"spark.driver.memory": "4g"}) for a session of our own, and those of the store, for the
    embedded one `slots`, `map_size`, `max_size` and `read_only`.
    """
    path = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    if not isinstance(path, str):
        raise StoreError(
            "a database is opened by its path or URL, which is text: pass a str or a Path, not"
            f" {type(url).__name__}"
        )
    try:
        return Database(path, **options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        known = (
            "spark, master, spark_conf and those of the store, for a directory slots, map_size,"
            " max_size and read_only"
        )
        raise TypeError(f"there is no such option: {error}; the options are {known}") from error
