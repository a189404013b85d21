"""A database of the benchmark in HBase: base tables that a bare client of HBase writes too.

The cluster is a real one on this machine, in the working directory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from belvedere.bench import workload_join
from belvedere.bench.oracle import JoinOracle, Log, Oracle
from belvedere.bench.scenarios.database import Database, batches
from belvedere.bench.scenarios.settings import Settings
from belvedere.bench.views import BASE_COLUMNS, V5, VIEWS, View
from belvedere.epochs.width import Fixed, Width
from belvedere.spark.runner import SparkRunner
from belvedere.stores.hbase.install import uninstall
from belvedere.stores.hbase.jvm import java_class
from belvedere.stores.hbase.local import Cluster, create_table

FAMILY, COLUMNS = "d", ("grp", "val")
TASKS, SLOTS = 2, 4  # tasks unless said; slots for at most as many tasks
_COPIES = "plain"  # the namespace of tables that the bare client writes
_R = f"CREATE TABLE r ({BASE_COLUMNS}) USING hbase OPTIONS (table = '{{}}', family = 'd')"
_S = (
    "CREATE TABLE s (grp STRING, name STRING, PRIMARY KEY (grp))"
    " USING hbase OPTIONS (table = '{}', family = 'd')"
)


class HBaseDatabase(Database):
    """Table `r`, and `s` if the join is one of the views, in a namespace of its own."""

    def __init__(self, cluster: Cluster, namespace: str, views: Sequence[View]) -> None:
        self.views, self.namespace = tuple(views), namespace
        self.url, self.joins = cluster.url(namespace), V5 in views
        self.quorum = self.url.split("/")[2]
        self.db: Any = import_module("belvedere").open(
            self.url, master=f"local[{SLOTS}]", slots=SLOTS, grace=0
        )
        self.use_tasks(TASKS)

    def users(self, table: str) -> str:
        """The HBase table of a base table."""
        return f"{self.namespace}_users:{table}"

    def use_tasks(self, tasks: int, fixed: Fixed | None = "wide") -> None:
        """Epochs from now on have so many tasks, however small they are; or at most so many, where
        it is not fixed.
        """
        width = Width(tasks, fixed)
        self.db._runner = SparkRunner(self.db.store, self.db.spark, width)

    def create(self) -> None:
        for name, text in (("r", _R), ("s", _S)) if self.joins else (("r", _R),):
            create_table(self.url, self.users(name), FAMILY)
            self.db.sql(text.format(self.users(name)))
        for view in self.views:
            self.db.sql(view.create)
        self.db.catch_up()

    def write(self, log: Log, call: int) -> int:
        if not self.joins:
            return super().write(log, call)
        written = 0
        for batch in batches(log, call):
            on_s = pc.equal(batch.column("tbl"), "S")
            left, right = batch.filter(pc.invert(on_s)), batch.filter(on_s)
            deletes = pc.equal(left.column("op"), "delete")
            self.db.table("r").write_many(left.select(["key", *COLUMNS]), deletes=deletes)
            self.db.table("s").put_many(right.select(["grp", "name"]))
            written += batch.num_rows
        return written

    def log_of(self, settings: Settings, number: int) -> Log:
        """A log with the rows that this database needs."""
        ops, groups, seed = settings.hbase_ops, settings.groups, settings.seed + number
        if self.joins:
            return workload_join.generate(ops, max(1, ops // 4), groups, seed=seed)
        return settings.log(number, ops)

    def correct(self, logs: Sequence[Log] = ()) -> bool:
        """Whether every view is what DuckDB computes from the tables as HBase shows them: a put
        that follows a delete within a millisecond is hidden there, whatever the log says.
        """
        rows = self._rows("r")
        log = rows.append_column("op", pa.array(["put"] * rows.num_rows))
        log = log.append_column("seq", pa.array(range(rows.num_rows), pa.int64()))
        oracle = JoinOracle([_both(log, self._rows("s"))]) if self.joins else Oracle([log])
        try:
            return all(oracle.agrees(v, self.db.view(v.name).to_arrow()) for v in self.views)
        finally:
            oracle.close()

    def _rows(self, name: str) -> pa.Table:
        table = self.db.table(name)
        return pa.Table.from_pylist(list(table.scan()), schema=table.schema.arrow)


def _both(r: pa.Table, s: pa.Table) -> pa.Table:
    """The rows of two tables as one log of the join."""
    count = pa.array(range(s.num_rows), pa.int64())
    named = s.append_column("op", pa.array(["put"] * s.num_rows)).append_column("seq", count)
    tagged = [
        each.append_column("tbl", pa.array([tbl] * each.num_rows))
        for each, tbl in ((r, "R"), (named, "S"))
    ]
    return pa.concat_tables(tagged, promote_options="default")


class BareClient:
    """HBase's own client in Java, without Belvedere."""

    def __init__(self, database: HBaseDatabase) -> None:
        self._database = database
        self._client = database.db.store.client
        self._java: Any = java_class("belvedere.hbase.client.PlainWrites")(database.quorum)
        self._client.tables.create_namespace(_COPIES)

    def take(self, epoch: int) -> int:
        """What an epoch has written, in rows; `write` puts it into copies of the same tables."""
        rows = 0
        for name in self._client.tables.names(self._database.namespace):
            table = f"{self._database.namespace}:{name}"
            if name == "state" or "." in name:
                copy = f"{_COPIES}:{self._database.namespace}.{name}"
                self._client.call(self._java.copy, table, copy)
                rows += int(self._client.call(self._java.take, table, copy, epoch))
        return rows

    def write(self, threads: int) -> float:
        return float(self._client.call(self._java.write, threads))

    def puts(self, table: str, prefix: str, count: int, in_a_call: int) -> list[float]:
        """Put rows into a table of users; seconds of each call."""
        place = (table, FAMILY, list(COLUMNS))
        return list(self._client.call(self._java.puts, *place, prefix, count, in_a_call))


def views_of(name: str) -> tuple[View, ...]:
    return (V5,) if name == V5.name else (VIEWS[name],)


@contextmanager
def cluster(settings: Settings) -> Iterator[Cluster]:
    """A new cluster with two region servers, which is gone afterwards."""
    directory = settings.work / "hbase"
    shutil.rmtree(directory, ignore_errors=True)
    made = Cluster(directory)
    try:
        made.up()
        yield made
    finally:
        made.down()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def fresh(made: Cluster, namespace: str, views: Sequence[View]) -> Iterator[HBaseDatabase]:
    """A new database. Its peer goes with it: every peer reads the logs of all tables."""
    database = HBaseDatabase(made, namespace, views)
    try:
        database.create()
        yield database
    finally:
        database.close()
        uninstall(database.quorum, namespace)
