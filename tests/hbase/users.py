"""A user of HBase: its own tables, its own client, and writers that count what they write."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from belvedere.stores.base.mapping import MappedColumn, MappedKey, Mapping
from belvedere.stores.hbase.base_tables import HBaseBase
from belvedere.stores.hbase.jvm import java_class
from belvedere.stores.hbase.local import Cluster
from belvedere.stores.hbase.url import parse
from belvedere.types import parse_type

_HBASE = "org.apache.hadoop.hbase"
STRING = parse_type("string")
BINARY = parse_type("binary")


def quorum(cluster: Cluster) -> str:
    return parse(cluster.url()).cluster


def mapping(source: str) -> Mapping:
    """Rows are keys; of the family f the columns a and b."""
    columns = tuple(MappedColumn(STRING, 0, name) for name in (b"a", b"b"))
    return Mapping(source, MappedKey((BINARY,)), (b"f",), columns)


# what is done ("put", "version", "column", "family", "family version"), column, time stamp, value
Mutation = tuple[str, bytes, int, bytes]


class User:
    """What a user does with a client of HBase."""

    def __init__(self, cluster: Cluster) -> None:
        connections: Any = java_class("belvedere.hbase.client.Connections")
        self.connection = connections.of(quorum(cluster))
        self.admin = self.connection.getAdmin()

    def create(
        self, name: str, splits: Iterable[bytes] = (), scope: int = 1, **family: int
    ) -> None:
        table = java_class(f"{_HBASE}.client.TableDescriptorBuilder").newBuilder(self._name(name))
        builder = java_class(f"{_HBASE}.client.ColumnFamilyDescriptorBuilder").newBuilder(b"f")
        builder.setScope(scope).setMaxVersions(3)
        for setter, value in family.items():
            getattr(builder, setter)(value)
        self.admin.createTable(table.setColumnFamily(builder.build()).build(), list(splits) or None)

    def put(self, name: str, row: bytes, **values: str) -> None:
        put = java_class(f"{_HBASE}.client.Put")(row)
        for column, value in values.items():
            put.addColumn(b"f", column.encode(), value.encode())
        with self.open(name) as table:
            table.put(put)

    def put_unlogged(self, name: str, row: bytes, **values: str) -> None:
        """Which no log will have."""
        put = java_class(f"{_HBASE}.client.Put")(row)
        put.setDurability(java_class(f"{_HBASE}.client.Durability").SKIP_WAL)
        for column, value in values.items():
            put.addColumn(b"f", column.encode(), value.encode())
        with self.open(name) as table:
            table.put(put)

    def delete_unlogged(self, name: str, row: bytes) -> None:
        delete = java_class(f"{_HBASE}.client.Delete")(row)
        delete.setDurability(java_class(f"{_HBASE}.client.Durability").SKIP_WAL)
        with self.open(name) as table:
            table.delete(delete)

    def truncate(self, name: str) -> None:
        self.admin.disableTable(self._name(name))
        self.admin.truncateTable(self._name(name), True)

    def compact(self, name: str) -> None:
        """Flush, so that a compaction has files, and rewrite all of them."""
        self.admin.flush(self._name(name))
        self.admin.majorCompact(self._name(name))

    def delete(self, name: str, row: bytes) -> None:
        with self.open(name) as table:
            table.delete(java_class(f"{_HBASE}.client.Delete")(row))

    def mutate(self, name: str, row: bytes, cells: Iterable[Mutation]) -> None:
        """Single cells and markers with time stamps of their own, as one operation."""
        put = java_class(f"{_HBASE}.client.Put")(row)
        delete = java_class(f"{_HBASE}.client.Delete")(row)
        for kind, column, time_stamp, value in cells:
            if kind == "put":
                put.addColumn(b"f", column, time_stamp, value)
            elif kind == "version":
                delete.addColumn(b"f", column, time_stamp)
            elif kind == "column":
                delete.addColumns(b"f", column, time_stamp)
            elif kind == "family":
                delete.addFamily(b"f", time_stamp)
            else:
                delete.addFamilyVersion(b"f", time_stamp)
        some = java_class("java.util.ArrayList")()
        for each in (put, delete):
            if not each.isEmpty():
                some.add(each)
        mutations = java_class(f"{_HBASE}.client.RowMutations").of(some)
        with self.open(name) as table:
            table.mutateRow(mutations)

    def regions(self, name: str) -> list[Any]:
        return list(self.admin.getRegions(self._name(name)))

    def server_of(self, name: str, region: Any) -> Any:
        locator = self.connection.getRegionLocator(self._name(name))
        return locator.getRegionLocation(region.getStartKey(), True).getServerName()

    def move(self, name: str, region: Any) -> None:
        """To another server than the one where it is."""
        at = self.server_of(name, region)
        deadline = time.monotonic() + 60
        while True:  # a server that was started a moment ago may not be there yet
            others = [each for each in self.admin.getRegionServers() if not each.equals(at)]
            if others:
                break
            assert time.monotonic() < deadline, "there is one region server only"
        self.admin.move(region.getEncodedNameAsBytes(), others[0])

    def split(self, region: Any, row: bytes) -> None:
        _await(self.admin.splitRegionAsync(region.getRegionName(), row))

    def merge(self, one: Any, other: Any) -> None:
        names = [one.getEncodedNameAsBytes(), other.getEncodedNameAsBytes()]
        bytes_array = java_class("byte[][]")
        _await(self.admin.mergeRegionsAsync(bytes_array(names), False))

    def _name(self, name: str) -> Any:
        return java_class(f"{_HBASE}.TableName").valueOf(name)

    def open(self, name: str) -> Any:
        return self.connection.getTable(self._name(name))


def _await(future: Any) -> None:
    """A procedure of the master, which may die meanwhile: then it goes on after a while."""
    future.get(120, java_class("java.util.concurrent.TimeUnit").SECONDS)


class Writer(threading.Thread):
    """Puts 1, 2, 3 and so on into each of its rows; every seventh operation deletes the row.

    `acknowledged` is how far each row has come. An operation is repeated until it is acknowledged.
    """

    def __init__(self, user: User, table: str, rows: Iterable[bytes]) -> None:
        super().__init__(name=f"writer of {table}")
        self._user, self._table, self._rows = user, table, list(rows)
        self._stop_now = threading.Event()
        self.acknowledged = dict.fromkeys(self._rows, 0)
        self.error: BaseException | None = None

    def run(self) -> None:
        throwable = java_class("java.lang.Throwable")
        try:
            while not self._stop_now.is_set():
                for row in self._rows:
                    self._one(row, throwable)
        except BaseException as error:  # told to the test by `finish`
            self.error = error

    def _one(self, row: bytes, throwable: Any) -> None:
        number = self.acknowledged[row] + 1
        while True:
            try:
                if number % 7 == 0:
                    self._user.delete(self._table, row)
                else:
                    self._user.put(self._table, row, a=str(number))
                break
            except throwable:
                continue
        self.acknowledged[row] = number

    def finish(self) -> dict[bytes, int]:
        self._stop_now.set()
        self.join(120)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return dict(self.acknowledged)


Operation = tuple[int, str | None]  # sequence id and what was put; None for a delete


def history(base: HBaseBase, table: int, high: int) -> dict[bytes, list[Operation]]:
    """The operations on every row, in the order of their positions."""
    rows: dict[bytes, list[Operation]] = defaultdict(list)
    position = 0
    for block in base.read_log("log", 0, high):
        assert block.position >= position
        position = block.end
        if block.table != table:
            continue
        assert block.cells is not None
        keys = [key[1:-1] for key in block.keys.to_pylist()]
        for cell in block.cells.to_pylist():
            value = cell["value"].decode() if cell["type"] == 4 else None
            rows[keys[cell["operation"]]].append((cell["sequence"], value))
    assert position <= high
    return rows


def check_order(rows: dict[bytes, list[Operation]], least: dict[bytes, int]) -> int:
    """Every row counts 1, 2, 3 and so on, at least so far; returns how many came again.

    What was delivered again has a sequence id that is not larger. A client may repeat an operation
    whose answer it did not get; it then has a new id.
    """
    again = 0
    for row, count in least.items():
        last, reached = 0, 0
        for sequence, value in rows.get(row, []):
            if sequence <= last:
                again += 1
                continue
            last = sequence
            number = int(value) if value is not None else -(-reached // 7) * 7
            if number == 0 or (value is None and number not in (reached, reached + 1)):
                raise AssertionError(f"{row!r}: a delete behind {reached}")
            assert number in (reached, reached + 1), f"{row!r}: {number} behind {reached}"
            reached = number
        assert reached >= count, f"{row!r}: {count} were acknowledged, {reached} captured"
    return again
