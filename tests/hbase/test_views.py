"""Views in HBase: tables of their own that other clients can read."""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from belvedere.encoding import KeyCodec, RowCodec
from belvedere.errors import Damaged, Stale, StoreError
from belvedere.stores import registry
from belvedere.stores.base import TableShape, Write
from belvedere.stores.hbase.client import Cell
from belvedere.stores.hbase.jvm import java_class
from belvedere.stores.hbase.local import Cluster
from belvedere.stores.hbase.store import HBaseStore
from belvedere.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Column, decimal
from belvedere.waiting import wait_until
from tests.conformance.test_stores import as_of, binary, write_epoch
from tests.hbase.stores import namespace, open_new
from tests.hbase.test_rules import sweep

pytestmark = pytest.mark.hbase

VIEW, OTHER = 31, 32
VALUES = (
    Column("name", STRING),
    Column("_", BIGINT),
    Column("total", decimal(12, 2)),
    Column("Share", DOUBLE),
    Column("open", BOOLEAN),
)
SHAPE = TableShape(VIEW, "sales by city", (Column("city", INT),), VALUES)
CODEC = RowCodec(tuple(column.type for column in VALUES))
KEYS = KeyCodec((INT,))
FULL = ("Aš", 5, Decimal("-12.50"), 0.25, True)


def row(*values: object) -> bytes:
    return CODEC.encode_one(values)


def key(city: int) -> bytes:
    encoded: bytes = KEYS.encode([pa.array([city], pa.int32())])[0].as_py()
    return encoded


@pytest.fixture
def store(cluster: Cluster) -> Iterator[HBaseStore]:
    made = open_new(cluster, (OTHER,))
    made.state.create([SHAPE])
    yield made
    made.close()


def cells(store: HBaseStore, city: int) -> dict[bytes, tuple[int, bytes]]:
    """What a plain HBase client sees."""
    table = store.client.cells(f"{store.address.namespace}:sales_by_city.{VIEW}")
    found = table.newest(b"\0" + key(city), {"v": 0})
    return {cell.qualifier: (cell.timestamp, cell.value) for cell in found}


def test_records_are_cells_in_the_encodings_of_hbase(store: HBaseStore) -> None:
    """HBase's own `Bytes` reads what Belvedere wrote."""
    write_epoch(store, 3, {key(1): row(*FULL)}, VIEW)
    found = {name: value for name, (_, value) in cells(store, 1).items()}
    assert set(found) == {b"_", b"name", b"__", b"total", b"Share", b"open"}
    to = java_class("org.apache.hadoop.hbase.util.Bytes")
    array = java_class("byte[]")
    assert found[b"_"] == b"\1\0"
    assert str(to.toString(array(found[b"name"]))) == "Aš"
    assert to.toLong(array(found[b"__"])) == 5
    assert str(to.toBigDecimal(array(found[b"total"]))) == "-12.50"
    assert to.toDouble(array(found[b"Share"])) == 0.25
    assert to.toBoolean(array(found[b"open"]))


def test_a_column_that_became_null_does_not_show_its_old_value(store: HBaseStore) -> None:
    first, second = row(*FULL), row("B", None, None, None, None)
    write_epoch(store, 1, {key(1): first, key(2): first}, VIEW)
    write_epoch(store, 2, {key(1): second, key(2): None}, VIEW)
    write_epoch(store, 3, {key(2): second}, VIEW)
    assert cells(store, 1)[b"__"][0] == 1  # the old cell is still there
    assert as_of(store, 1, VIEW) == {key(1): first, key(2): first}
    assert as_of(store, 2, VIEW) == {key(1): second}
    assert as_of(store, 3, VIEW) == {key(1): second, key(2): second}
    shard = store.state.shard(0, 4)
    assert shard.get_many(VIEW, binary(key(2), key(3), key(1))).to_pylist() == [
        second,
        None,
        second,
    ]
    found = [
        (numbers.tolist(), values.to_pylist())
        for numbers, _, values in shard.scan_prefixes(VIEW, binary(key(1), key(2)), limit=1)
    ]
    assert found == [([0, 1], [second, second])]
    assert store.state.count(0, VIEW) == (2, 2 * len(key(1) + second))
    assert sweep(store, 3) == 2
    assert as_of(store, 3, VIEW) == {key(1): second, key(2): second}


def test_a_cell_that_another_client_deleted_is_found_out(store: HBaseStore) -> None:
    write_epoch(store, 1, {key(1): row(*FULL)}, VIEW)
    table = store.client.cells(f"{store.address.namespace}:sales_by_city.{VIEW}")
    table.apply([Cell(b"\0" + key(1), "v", b"name", 2**62, kind="C")])
    with pytest.raises(Damaged, match="other clients"):
        as_of(store, 1, VIEW)


def test_a_dropped_view_has_no_table_and_late_attempts_change_nothing(store: HBaseStore) -> None:
    write_epoch(store, 1, {key(1): row(*FULL)}, VIEW)
    other = HBaseStore.open(store.url)
    assert as_of(other, 1, VIEW) == {key(1): row(*FULL)}
    late = other.state.shard(0, 2)
    late.write(Write(VIEW, binary(key(1)), binary(None), binary(row(*FULL))))
    assert store.state.drop(0, VIEW)
    assert store.state.drop(1, VIEW)
    assert store.client.tables.names(store.address.namespace) == ["belvedere", "state"]
    with pytest.raises(Stale):
        late.commit()
    for each in (store, other):
        assert as_of(each, 1, VIEW) == {}
        assert each.state.shard(0, 2).get_many(VIEW, binary(key(1))).to_pylist() == [None]
        assert list(each.state.shard(0, 2).scan_prefixes(VIEW, binary(key(1)))) == []
        each.state.create([SHAPE])  # by somebody who has not heard of it
    assert store.client.tables.names(store.address.namespace) == ["belvedere", "state"]
    other.close()


def test_a_store_is_found_by_its_url_and_keeps_its_slots(store: HBaseStore) -> None:
    assert registry.exists(store.url)
    assert not registry.exists(store.url.replace(store.address.namespace, "nothing_there"))
    write_epoch(store, 1, {b"a": b"1"}, OTHER)
    with pytest.raises(StoreError, match="2 slots, not 3"):
        HBaseStore.open(store.url, slots=3)
    found = pickle.loads(pickle.dumps(store))
    assert found.state.slots == 2
    assert as_of(found, 1, OTHER) == {b"a": b"1"}
    assert pickle.loads(pickle.dumps(store)) is found
    found.close()
    with pytest.raises(StoreError, match="closed"):
        found.catalog.get_one("a")


def test_reading_only_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(StoreError, match="read only"):
        HBaseStore.open("hbase://nowhere:1/ns", read_only=True)


def test_a_wrong_address_is_told_in_seconds(cluster: Cluster) -> None:
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:1.*is HBase started"):
        HBaseStore.open("hbase://127.0.0.1:1/ns")
    url = cluster.url(namespace()).partition("?")[0]
    with pytest.raises(StoreError, match="znode"):
        HBaseStore.open(f"{url}?znode=/elsewhere")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(StoreError, match=f"ZooKeeper at 127.0.0.1:{port} does not answer"):
            HBaseStore.open(f"hbase://127.0.0.1:{port}/ns")
    assert time.monotonic() - began < 20


def test_a_slot_that_was_divided_by_hand_says_what_to_do(store: HBaseStore) -> None:
    split(store, f"sales_by_city.{VIEW}", b"\0" + key(50))
    with pytest.raises(StoreError, match="merge the regions"):
        write_epoch(store, 1, {key(city): row(*FULL) for city in range(100)}, VIEW)


def split(store: HBaseStore, table: str, at: bytes) -> None:
    """As an administrator would, without asking the table's policy."""
    configuration = java_class("org.apache.hadoop.hbase.HBaseConfiguration").create()
    configuration.set("hbase.zookeeper.quorum", store.address.servers)
    connect = java_class("org.apache.hadoop.hbase.client.ConnectionFactory").createConnection
    name = java_class("org.apache.hadoop.hbase.TableName").valueOf(
        f"{store.address.namespace}:{table}"
    )
    with connect(configuration) as connection, connection.getAdmin() as admin:
        regions = len(admin.getRegions(name))
        admin.split(name, java_class("byte[]")(at))
        wait_until(lambda: len(admin.getRegions(name)) > regions or None, 30)
        assert wait_until(lambda: admin.isTableAvailable(name) or None, 30)
