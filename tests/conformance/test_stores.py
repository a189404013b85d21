"""Every store keeps the contract of `stores.base`: one test per sentence, run against each store
that can run here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from belvedere.encoding import RowCodec
from belvedere.errors import Conflict, Dropped, RowConflict, Stale, StoreError, TooLarge
from belvedere.stores.base import (
    FLOOR,
    CatalogTransaction,
    Expected,
    FewOperations,
    LogBlock,
    Operations,
    Shard,
    Store,
    TableShape,
    Write,
)
from belvedere.stores.memory import RowRules
from belvedere.stores.registry import open_store
from belvedere.types import BIGINT, STRING, Column, Vector

TABLE, OTHER = 7, 8
LAST_TABLE = 2**32 - 1


def opened(kind: str, path: Path) -> Store:
    if kind == "embedded":
        return open_store(str(path / "store"), slots=2)
    made = open_store("memory:", slots=2, rows=RowRules() if kind == "rows" else None)
    made.state.create([TableShape(table) for table in (*range(1, 20), LAST_TABLE)])
    return made


@pytest.fixture(params=["memory", "embedded", "rows"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = opened(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["memory", "embedded"])
def slot_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store with slot transactions."""
    made = opened(request.param, tmp_path)
    assert made.capabilities.slot_transactions
    yield made
    made.close()


@pytest.fixture(params=["memory", "embedded"])
def passing_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store that is given operations that pass."""
    made = opened(request.param, tmp_path)
    assert made.capabilities.passing
    yield made
    made.close()


def collect(store: Store, keep: int) -> None:
    """As a coordinator does it: the floor rises first."""
    floor = int(store.catalog.get_one(FLOOR) or b"0")
    store.catalog.transact(lambda t: t.put(FLOOR, b"%d" % max(keep, floor)))
    store.state.collect(keep)


def binary(*values: bytes | None) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def apply(
    store: Store,
    operations: list[tuple[bytes, bytes | None]],
    table: int = TABLE,
    before_images: bool = True,
) -> int:
    keys, values = zip(*operations, strict=True)
    written = store.base.write(table, binary(*keys), binary(*values), before_images)
    return written.operations


def at(position: int) -> Vector:
    """A position of the only stream."""
    return Vector({"log": position})


def log_of(store: Store, low: int = 0, high: int | None = None) -> list[LogBlock]:
    return list(store.base.read_log("log", low, store.base.end()["log"] if high is None else high))


def rows_of(
    store: Store,
    table: int = TABLE,
    low: bytes = b"",
    high: bytes | None = None,
    batch: int = 100_000,
) -> list[tuple[bytes, bytes]]:
    with store.base.snapshot() as snapshot:
        return flat(snapshot.scan(table, low, high, batch))


def flat(batches: Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]) -> list[tuple[bytes, bytes]]:
    return [
        pair
        for keys, values in batches
        for pair in zip(keys.to_pylist(), values.to_pylist(), strict=True)
    ]


def under(
    shard: Shard,
    prefixes: list[bytes],
    limit: int | None = None,
    batch: int = 100_000,
    table: int = TABLE,
) -> list[tuple[int, bytes, bytes]]:
    """What `scan_prefixes` gives, checked to come in batches that are not empty
    and not too long.
    """
    found: list[tuple[int, bytes, bytes]] = []
    for numbers, keys, values in shard.scan_prefixes(table, binary(*prefixes), limit, batch):
        assert 0 < len(numbers) == len(keys) == len(values) <= batch
        found += zip(numbers.tolist(), keys.to_pylist(), values.to_pylist(), strict=True)
    return found


def write_epoch(
    store: Store, epoch: int, changes: dict[bytes, bytes | None], table: int = TABLE, slot: int = 0
) -> None:
    """One whole attempt: read as of e-1, write, commit."""
    shard = store.state.shard(slot, epoch)
    buffer(shard, changes, table)
    shard.commit()
    shard.close()


def get_one(store: Store, epoch: int, key: bytes) -> bytes | None:
    return store.state.getter(TABLE)(0, epoch, key)


def buffer(shard: Shard, changes: dict[bytes, bytes | None], table: int = TABLE) -> None:
    keys = binary(*sorted(changes))
    values = binary(*(changes[key] for key in sorted(changes)))
    shard.write(Write(table, keys, values, shard.get_many(table, keys)))


def as_of(store: Store, epoch: int, table: int = TABLE, slot: int = 0) -> dict[bytes, bytes]:
    return dict(flat(store.state.reader(slot, epoch).scan(table)))


# ---------------------------------------------------------------- catalog


def test_a_transaction_sees_its_own_writes_and_is_there_afterwards(store: Store) -> None:
    def body(transaction: CatalogTransaction) -> list[tuple[str, bytes]]:
        transaction.put("view/2", b"b")
        transaction.put("view/1", b"a")
        transaction.put("views", b"x")
        transaction.put("table/1", b"t")
        transaction.delete("table/1")
        transaction.delete("table/never")
        assert transaction.get("view/1") == b"a"
        assert transaction.get("table/1") is None
        return transaction.scan("view/")

    assert store.catalog.transact(body) == [("view/1", b"a"), ("view/2", b"b")]
    assert store.catalog.read(lambda transaction: transaction.scan("")) == [
        ("view/1", b"a"),
        ("view/2", b"b"),
        ("views", b"x"),
    ]


def test_a_body_that_raises_writes_nothing(store: Store) -> None:
    def body(transaction: CatalogTransaction) -> None:
        transaction.put("a", b"1")
        raise KeyError("no")

    with pytest.raises(KeyError):
        store.catalog.transact(body)
    assert store.catalog.read(lambda transaction: transaction.get("a")) is None
    store.catalog.transact(lambda transaction: transaction.put("a", b"2"))
    assert store.catalog.read(lambda transaction: transaction.get("a")) == b"2"


def test_writing_in_a_catalog_read_raises(store: Store) -> None:
    with pytest.raises(StoreError, match="transact"):
        store.catalog.read(lambda transaction: transaction.put("a", b"1"))
    with pytest.raises(StoreError, match="transact"):
        store.catalog.read(lambda transaction: transaction.delete("a"))


def test_a_catalog_read_is_one_snapshot(store: Store) -> None:
    store.catalog.transact(lambda transaction: transaction.put("a", b"1"))

    def body(transaction: CatalogTransaction) -> tuple[bytes | None, bytes | None]:
        first = transaction.get("a")
        store.catalog.transact(lambda other: other.put("a", b"2"))
        return first, transaction.get("a")

    assert store.catalog.read(body) == (b"1", b"1")
    assert store.catalog.read(lambda transaction: transaction.get("a")) == b"2"


def test_the_mark_of_a_catalog_changes_with_every_transaction_and_only_then(store: Store) -> None:
    marks = [store.catalog.mark()]
    for number in range(6):
        store.catalog.transact(lambda transaction: transaction.put("n", b"%d" % number))  # noqa: B023  # runs at once
        marks.append(store.catalog.mark())
        store.catalog.read(lambda transaction: transaction.get("n"))
        store.catalog.get_one("n")
        assert store.catalog.mark() == marks[-1]
        assert store.catalog.read_marked(lambda transaction: transaction.get("n")) == (
            marks[-1],
            b"%d" % number,
        )
    assert len(set(marks)) == len(marks)


def test_a_catalog_value_may_have_almost_a_megabyte(store: Store) -> None:
    value = bytes(1_000_000)
    store.catalog.transact(lambda transaction: transaction.put("big", value))
    assert store.catalog.read(lambda transaction: transaction.get("big")) == value


# ---------------------------------------------------------------- base tables


def images_of(store: Store, block: LogBlock) -> list[bytes | None]:
    """The rows before, as a store that has no history of rows logs them."""
    if store.history is None:
        assert block.before is not None
        return list(block.before.to_pylist())
    with store.history.as_of(at(block.position)) as rows:
        now = {key: rows.get(block.table, key) for key in block.keys.to_pylist()}
    images = []
    for key, value in zip(block.keys.to_pylist(), block.values.to_pylist(), strict=True):
        images.append(now[key])
        now[key] = value
    return images


def test_operations_are_applied_in_their_order_and_it_can_be_told_what_the_rows_were(
    store: Store,
) -> None:
    assert apply(store, [(b"k", b"1"), (b"a", b"x"), (b"k", b"2"), (b"k", None), (b"k", b"3")]) == 5
    assert apply(store, [(b"a", None), (b"never", None)]) == 7
    assert rows_of(store) == [(b"k", b"3")]
    first, second = log_of(store)
    assert (first.stream, first.position, first.end, first.table) == ("log", 0, 5, TABLE)
    assert (second.position, second.end) == (5, 7)
    columns = first.keys.to_pylist(), first.values.to_pylist(), images_of(store, first)
    on_k = [row for row in zip(*columns, strict=True) if row[0] == b"k"]
    assert on_k == [(b"k", b"1", None), (b"k", b"2", b"1"), (b"k", None, b"2"), (b"k", b"3", None)]
    columns = second.keys.to_pylist(), second.values.to_pylist(), images_of(store, second)
    assert sorted(zip(*columns, strict=True)) == [(b"a", None, b"x"), (b"never", None, None)]


def test_a_table_without_before_images_logs_none(store: Store) -> None:
    apply(store, [(b"k", b"1"), (b"j", b"2")], before_images=False)
    apply(store, [(b"k", None), (b"k", b"3"), (b"j", None)], before_images=False)
    store.base.put_one(TABLE, b"l", b"4", before_images=False)
    assert [block.before for block in log_of(store)] == [None, None, None]
    assert rows_of(store) == [(b"k", b"3"), (b"l", b"4")]


def test_put_one_is_a_write_of_one_operation(store: Store) -> None:
    assert store.base.put_one(TABLE, b"k", b"1", before_images=True).operations == 1
    assert store.base.put_one(TABLE, b"k", b"22", before_images=True).operations == 2
    assert store.base.put_one(TABLE, b"k", None, before_images=True).operations == 3
    assert store.base.put_one(TABLE, b"k", None, before_images=True).operations == 4
    assert rows_of(store) == []
    found = [
        (b.position, b.keys.to_pylist(), b.values.to_pylist(), images_of(store, b))
        for b in log_of(store)
    ]
    assert found == [
        (0, [b"k"], [b"1"], [None]),
        (1, [b"k"], [b"22"], [b"1"]),
        (2, [b"k"], [None], [b"22"]),
        (3, [b"k"], [None], [None]),
    ]


def test_a_write_of_nothing_logs_nothing(store: Store) -> None:
    apply(store, [(b"k", b"1")])
    assert store.base.write(TABLE, binary(), binary(), True) == Vector()
    assert len(log_of(store)) == 1


def test_sliced_arrays_are_written_as_they_look(store: Store) -> None:
    keys, values = binary(b"zz", b"b", b"a", b"yy"), binary(None, b"1", None, b"x")
    store.base.write(TABLE, keys.slice(1, 2), values.slice(1, 2), True)
    (block,) = log_of(store)
    assert sorted(zip(block.keys.to_pylist(), block.values.to_pylist(), strict=True)) == [
        (b"a", None),
        (b"b", b"1"),
    ]
    assert rows_of(store) == [(b"b", b"1")]


def test_log_blocks_carry_the_time_of_the_write(store: Store) -> None:
    apply(store, [(b"k", b"1")])
    store.base.put_one(TABLE, b"k", b"2", True)
    first, second = (block.time for block in log_of(store))
    assert 1e9 < first <= second


def test_unless_after_raises_if_the_table_was_written_meanwhile_and_writes_nothing(
    store: Store,
) -> None:
    position = apply(store, [(b"k", b"1")])
    apply(store, [(b"k", b"other")], table=OTHER)
    assert store.base.write(
        TABLE, binary(b"k"), binary(b"2"), True, unless_after=at(position)
    ) == at(3)
    with pytest.raises(Conflict):
        store.base.write(TABLE, binary(b"k"), binary(b"3"), True, unless_after=at(position))
    with pytest.raises(Conflict):
        store.base.write(TABLE, binary(b"k"), binary(b"3"), True, unless_after=at(2))
    assert rows_of(store) == [(b"k", b"2")]
    assert store.base.end() == {"log": 3}
    assert store.base.write(TABLE, binary(b"k"), binary(b"3"), True, unless_after=at(3)) == at(4)


def test_a_conflict_is_seen_after_the_log_is_trimmed(store: Store) -> None:
    apply(store, [(b"k", b"1"), (b"k", b"2")])
    store.base.trim("log", 2)
    with pytest.raises(Conflict):
        store.base.write(TABLE, binary(b"k"), binary(b"3"), True, unless_after=at(1))


def test_a_snapshot_shows_all_operations_before_its_position_and_no_others(store: Store) -> None:
    apply(store, [(b"a", b"1"), (b"b", b"2")])
    apply(store, [(b"a", b"o")], table=OTHER)
    with store.base.snapshot() as snapshot:
        apply(store, [(b"a", b"later"), (b"c", b"later")])
        assert snapshot.vector == Vector({"log": 3})
        assert snapshot.get(TABLE, b"a") == b"1"
        assert snapshot.get(TABLE, b"c") is None
        assert snapshot.get_many(TABLE, binary(b"b", b"c", b"a", b"a")).to_pylist() == [
            b"2",
            None,
            b"1",
            b"1",
        ]
        assert flat(snapshot.scan(TABLE)) == [(b"a", b"1"), (b"b", b"2")]
        assert flat(snapshot.scan(OTHER)) == [(b"a", b"o")]
    assert rows_of(store) == [(b"a", b"later"), (b"b", b"2"), (b"c", b"later")]


@pytest.mark.parametrize("table", [1, TABLE, LAST_TABLE])
def test_scans_respect_bounds_tables_and_batch_sizes(store: Store, table: int) -> None:
    keys = [
        *sorted(bytes([i, j]) for i in (0, 1, 127, 255) for j in range(0, 256, 5)),
        b"\xff\xff\xff",
    ]
    apply(store, [(key, b"v" + key) for key in reversed(keys)], table=table)
    apply(store, [(b"", b"empty"), (b"\xff" * 20, b"last")], table=table)
    for neighbour in {table - 1, table + 1} - {0, 2**32}:
        apply(store, [(b"", b"no"), (b"\x80", b"no"), (b"\xff" * 30, b"no")], table=neighbour)
    expected = [(b"", b"empty"), *((key, b"v" + key) for key in keys), (b"\xff" * 20, b"last")]
    expected.sort()
    for low, high in [
        (b"", None),
        (b"\x01", b"\x7f"),
        (b"\x01\x05", b"\x01\x05"),
        (b"\x01\x05", b"\x01\x05\x00"),
        (b"\x7f", None),
        (b"\xff", b""),
    ]:
        inside = [
            (key, value) for key, value in expected if low <= key and (high is None or key < high)
        ]
        assert rows_of(store, table, low, high) == inside
        assert rows_of(store, table, low, high, batch=7) == inside
    with store.base.snapshot() as snapshot:
        assert {len(found) for found, _ in snapshot.scan(table, batch=7)} <= set(range(1, 8))


def test_the_log_is_read_from_block_to_block(store: Store) -> None:
    ends = [0, *(apply(store, [(b"k%d" % i, b"v")] * (i + 1)) for i in range(100))]
    assert store.base.end() == {"log": ends[-1]}
    for low, high in [(0, 100), (3, 10), (99, 100), (5, 5)]:
        assert [
            block.position for block in store.base.read_log("log", ends[low], ends[high])
        ] == ends[low:high]
    assert list(store.base.read_log("log", ends[-1], ends[-1] + 10)) == []


def test_a_cut_is_the_largest_boundary_within_the_rows_or_the_end_of_the_first_block(
    store: Store,
) -> None:
    assert store.base.cut("log", 0, 10) == 0
    ends = [0]
    for size in (3, 1, 1, 10, 2, 5):
        ends.append(apply(store, [(b"k", b"v")] * size))
    for low in ends:
        for rows in range(30):
            after = [end for end in ends if end > low]
            within = [end for end in after if end <= low + rows]
            assert store.base.cut("log", low, rows) == (
                max(within) if within else after[0] if after else low
            ), (low, rows)


@pytest.mark.parametrize("before_images", [True, False])
def test_a_cut_by_size_has_at_most_so_many_bytes_or_one_block(
    store: Store, before_images: bool
) -> None:
    draw = random.Random(5)
    for _ in range(25):
        operations: list[tuple[bytes, bytes | None]] = [
            (b"k%d" % draw.randrange(9), b"v" * draw.choice([0, 10, 900]))
            for _ in range(draw.choice([1, 1, 3, 20]))
        ]
        apply(store, operations, before_images=before_images)
    blocks = {block.position: block for block in log_of(store)}
    for low in blocks:
        for size in (0, 50, 500, 2_000, 10_000, 10**9):
            cut = store.base.cut("log", low, 40, size)
            taken = [block for position, block in blocks.items() if low <= position < cut]
            assert low < cut <= store.base.cut("log", low, 40)
            assert cut == taken[-1].end
            assert len(taken) == 1 or sum(content(block) for block in taken) <= size
            assert store.base.cut("log", low, 40, 2 * size) >= cut


def content(block: LogBlock) -> int:
    columns = [block.keys, block.values, *([] if block.before is None else [block.before])]
    return sum(len(value or b"") for column in columns for value in column.to_pylist())


def both(first: dict[bytes, bytes], second: dict[bytes, bytes], images: bool) -> list[Operations]:
    """A transaction over two tables."""
    return [
        Operations(table, binary(*rows), binary(*rows.values()), images)
        for table, rows in ((TABLE, first), (OTHER, second))
    ]


@pytest.mark.parametrize("images", [True, False])
def test_a_transaction_over_several_tables_is_logged_as_a_whole(store: Store, images: bool) -> None:
    assert store.capabilities.transactions
    apply(store, [(b"a", b"0")])
    end = store.base.write_all(both({b"a": b"1", b"b": b"1"}, {b"a": b"x"}, images))
    assert end == store.base.end() == at(4)
    assert (rows_of(store), rows_of(store, OTHER)) == (
        [(b"a", b"1"), (b"b", b"1")],
        [(b"a", b"x")],
    )
    blocks = [(b.table, b.position, b.end, b.is_last) for b in log_of(store)]
    assert blocks == [(TABLE, 0, 1, True), (TABLE, 1, 3, False), (OTHER, 3, 4, True)]
    first, second = log_of(store, 1)
    assert (first.values.to_pylist(), second.values.to_pylist()) == ([b"1", b"1"], [b"x"])
    assert (first.before is None) == (not images or store.history is not None)
    if images:
        assert images_of(store, first) == [b"0", None]


def test_transactions_written_together_are_each_by_itself(store: Store) -> None:
    apply(store, [(b"a", b"0")])
    with store.base.together():
        known = store.base.write_all(both({b"a": b"1"}, {b"a": b"x"}, True))
        with store.base.together():  # which changes nothing
            known = store.base.write_all(both({b"a": b"2"}, {}, True), unless_after=known)
        with pytest.raises(Conflict):
            store.base.write_all(both({b"a": b"3"}, {}, True), unless_after=at(1))
    assert store.base.end() == known == at(4)
    assert rows_of(store) == [(b"a", b"2")]
    assert [block.end for block in log_of(store, 1) if block.is_last] == [3, 4]


def test_what_was_written_together_stays_if_the_last_of_it_fails(store: Store) -> None:
    def write() -> None:
        with store.base.together():
            apply(store, [(b"a", b"0")])
            store.base.write_all(both({b"a": b"1"}, {}, True), unless_after=at(0))

    with pytest.raises(Conflict):
        write()
    assert rows_of(store) == [(b"a", b"0")]


def passing(before: dict[bytes, bytes | None], after: dict[bytes, bytes | None]) -> Operations:
    """Operations that pass."""
    keys = sorted(after)
    values = [binary(*(rows[key] for key in keys)) for rows in (after, before)]
    return Operations(TABLE, binary(*keys), values[0], True, values[1])


def test_operations_that_pass_are_logged_as_they_are_told_and_are_no_rows(
    passing_store: Store,
) -> None:
    store = passing_store
    start = apply(store, [(b"o", b"0")], table=OTHER)
    told = passing({b"a": None, b"b": b"old"}, {b"a": b"new", b"b": None})
    beside = Operations(OTHER, binary(b"o", b"p"), binary(b"1", b"2"), True)
    assert store.base.write_all([told, beside]) == at(start + 4)
    first, second = log_of(store, start)
    assert (first.table, first.passes, first.is_last) == (TABLE, True, False)
    assert first.keys.to_pylist() == [b"a", b"b"]
    assert first.values.to_pylist() == [b"new", None]
    assert first.before is not None
    assert first.before.to_pylist() == [None, b"old"]
    assert (second.table, second.passes, second.before is None) == (OTHER, False, True)
    assert (rows_of(store), rows_of(store, OTHER)) == ([], [(b"o", b"1"), (b"p", b"2")])
    assert store.base.count(TABLE) == 0


@pytest.mark.parametrize("rows", [1, 50, 5000])
def test_what_passes_leaves_nothing_in_reads_of_the_past_and_behind_a_trim(
    passing_store: Store, rows: int
) -> None:
    """Few and many operations wait in different ways until they are settled."""
    store = passing_store
    assert store.history is not None
    keys = [b"%06d" % number for number in range(rows)]
    for written in range(3):
        value = b"%d" % written
        told = passing(dict.fromkeys(keys, b"before"), dict.fromkeys(keys, value))
        beside = Operations(OTHER, binary(*keys), binary(*[value] * rows), True)
        store.base.write_all([beside, told])
        if written == 1:
            store.base.trim("log", store.base.end()["log"])
    with store.history.as_of(at(4 * rows)) as past:
        assert past.get(OTHER, keys[0]) == b"1"
        assert past.get(TABLE, keys[0]) is None
    store.base.trim("log", store.base.end()["log"])
    assert rows_of(store) == []
    assert rows_of(store, OTHER) == [(key, b"2") for key in keys]
    assert store.base.count(OTHER) == rows


def test_a_conflict_is_seen_of_operations_that_pass(
    passing_store: Store,
) -> None:
    store = passing_store
    known = store.base.end()
    store.base.write_all([passing({b"a": None}, {b"a": b"1"})], known)
    with pytest.raises(Conflict):
        store.base.write_all([passing({b"a": b"1"}, {b"a": b"2"})], known)
    assert len(log_of(store)) == 1


def test_no_cut_and_no_trimming_divides_a_transaction(store: Store) -> None:
    for number in range(5):
        written = {b"%d" % k: b"v" for k in range(number + 1)}
        store.base.write_all(both(written, {b"k": b"w"}, True))
    ends = {block.end for block in log_of(store) if block.is_last}
    assert ends == {2, 5, 9, 14, 20}
    for low in (0, *sorted(ends)):
        for rows in range(25):
            for size in (None, 1, 100, 10_000):
                assert store.base.cut("log", low, rows, size) in ends
    for position in range(21):
        store.base.trim("log", position)
        kept = log_of(store, max([0, *(e for e in ends if e <= position)]))
        assert not kept or kept[0].position in {0, *ends}


def test_a_transaction_that_fails_in_one_table_writes_nothing(store: Store) -> None:
    apply(store, [(b"a", b"0")])
    before = store.base.end()
    apply(store, [(b"a", b"1")], table=OTHER)
    with pytest.raises(Conflict):
        store.base.write_all(both({b"a": b"2"}, {b"a": b"2"}, True), unless_after=before)
    store.base.drop(OTHER)
    with pytest.raises(Dropped):
        store.base.write_all(both({b"a": b"3"}, {b"a": b"3"}, True))
    assert rows_of(store) == [(b"a", b"0")]
    assert store.base.end() == at(2)


def test_a_transaction_is_written_if_the_rows_that_it_has_read_are_what_they_were(
    store: Store,
) -> None:
    apply(store, [(b"a", b"0"), (b"gone", b"1"), (b"gone", None)])
    apply(store, [(b"o", b"x")], table=OTHER)
    rows = [(TABLE, b"a", b"0"), (OTHER, b"o", b"x"), (TABLE, b"gone", None), (9, b"none", None)]
    expected = [Expected(*row) for row in rows]
    apply(
        store, [(b"a", b"1"), (b"a", b"0"), (b"b", b"2")]
    )  # the same value again, and another row
    written = Operations(TABLE, binary(b"a"), binary(b"3"), True)
    assert store.base.write_all([written], expected=expected) == store.base.end() == at(8)
    assert rows_of(store) == [(b"a", b"3"), (b"b", b"2")]


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ((TABLE, b"a", b"0"), (b"a", b"1")),
        ((TABLE, b"a", b"0"), (b"a", None)),
        ((OTHER, b"new", None), (b"new", b"1")),
    ],
)
def test_a_transaction_is_not_written_if_a_row_that_it_has_read_has_changed(
    store: Store, row: tuple[int, bytes, bytes | None], change: tuple[bytes, bytes | None]
) -> None:
    apply(store, [(b"a", b"0"), (b"b", b"0")])
    apply(store, [change], table=row[0])
    end, before = store.base.end(), rows_of(store)
    with pytest.raises(RowConflict) as found:
        store.base.write_all(
            both({b"b": b"2"}, {b"a": b"2"}, True),
            expected=[Expected(TABLE, b"b", b"0"), Expected(*row)],
        )
    assert (found.value.table, found.value.key) == row[:2]
    assert (store.base.end(), rows_of(store)) == (end, before)


def test_rows_of_a_dropped_table_are_not_what_a_transaction_has_read(store: Store) -> None:
    apply(store, [(b"a", b"0")])
    apply(store, [(b"o", b"x")], table=OTHER)
    store.base.drop(OTHER)
    written = Operations(TABLE, binary(b"a"), binary(b"3"), True)
    with pytest.raises(Dropped):
        store.base.write_all([written], expected=[Expected(OTHER, b"o", b"x")])
    with pytest.raises(Dropped):
        store.base.put_one(TABLE, b"a", b"3", True, [Expected(OTHER, b"o", b"x")])
    assert rows_of(store) == [(b"a", b"0")]


def test_few_operations_may_be_lists(store: Store) -> None:
    rows: list[tuple[bytes, bytes | None]] = [(b"a", b"0"), (b"", b""), (b"a", None), (b"b", b"1")]
    columns = [key for key, _ in rows], [value for _, value in rows]
    some = [FewOperations(TABLE, *columns, True), FewOperations(OTHER, [b"o"], [b"x"], True)]
    assert store.base.write_all(some) == store.base.end() == at(5)
    assert (rows_of(store), rows_of(store, OTHER)) == ([(b"", b""), (b"b", b"1")], [(b"o", b"x")])
    blocks = list(store.base.read_log("log", 0, 5))
    assert [(block.table, len(block.keys)) for block in blocks] == [(TABLE, 4), (OTHER, 1)]


@pytest.mark.parametrize("others", [0, 100])  # rows are looked up one by one, or many at a time
def test_one_operation_is_written_if_what_was_read_is_what_it_was(
    store: Store, others: int
) -> None:
    some = [Expected(TABLE, b"%d" % number, None) for number in range(others)]
    apply(store, [(b"a", b"0")])
    expected = [*some, Expected(TABLE, b"a", b"0")]
    assert store.base.put_one(TABLE, b"a", b"1", True, expected) == at(2)
    with pytest.raises(RowConflict) as found:
        store.base.put_one(TABLE, b"b", b"2", True, expected)
    assert (found.value.table, found.value.key) == (TABLE, b"a")
    assert store.base.put_one(TABLE, b"a", None, True, [Expected(OTHER, b"c", None)]) == at(3)
    assert rows_of(store) == []


def test_the_shapes_of_tables_can_be_told_any_number_of_times(store: Store) -> None:
    shapes = [TableShape(TABLE, "v", (Column("k", STRING),), (Column("n", BIGINT),))]
    row = RowCodec((BIGINT,)).encode_one((1,))
    store.state.create(shapes)
    write_epoch(store, 1, {b"a": row})
    store.state.create([*shapes, TableShape(OTHER)])
    assert as_of(store, 1) == {b"a": row}


def test_a_late_attempt_changes_nothing_once_the_floor_has_reached_its_epoch(store: Store) -> None:
    """With slot transactions and without."""
    write_epoch(store, 1, {b"a": b"1", b"b": b"1"})
    late = store.state.shard(0, 3)
    for epoch in (2, 3, 4, 5):
        write_epoch(store, epoch, {b"a": None if epoch == 3 else b"%d" % epoch})
    collect(store, 4)
    late.write(Write(TABLE, binary(b"a", b"c"), binary(b"late", b"late"), binary(None, None)))
    with pytest.raises(Stale):
        late.commit()
    assert as_of(store, 4) == {b"a": b"4", b"b": b"1"}
    assert as_of(store, 5) == {b"a": b"5", b"b": b"1"}


@pytest.mark.parametrize("width", [3, 900])
def test_a_stretch_ends_with_its_last_row_or_with_the_row_that_exceeds_its_bytes(
    store: Store, width: int
) -> None:
    rng = random.Random(width)
    rows = {b"%05d" % k: bytes(rng.randrange(width)) for k in range(0, 3000, rng.randint(1, 3))}
    apply(store, list(rows.items()))
    apply(store, [(b"0", b"another table")], table=TABLE + 1)
    ordered = sorted(rows.items())
    for _ in range(60):
        low = b"%05d" % rng.randrange(3100)
        most, size = rng.randint(1, 3000), rng.choice([rng.randint(1, 4000), 10**6, 10**9])
        with store.base.snapshot() as snapshot:
            end, count = snapshot.stretch(TABLE, low, most, size)
        within = [item for item in ordered if item[0] >= low][:count]
        used = sum(len(key) + len(value) for key, value in within)
        if end is None:
            assert within[-1:] in ([], ordered[-1:])
            assert len(within) < most
        else:
            assert within[-1][0] == end
            assert count == most or used >= size * 0.5
        assert used - sum(map(len, within[-1] if within else ())) <= size * 1.01


def test_the_rows_of_a_table_are_counted(store: Store) -> None:
    draw = random.Random(7)
    rows: dict[bytes, bytes | None] = {}
    assert store.base.count(TABLE) == 0
    for _ in range(60):
        operations = [
            (b"k%d" % draw.randrange(30), draw.choice([b"v", b"w", None]))
            for _ in range(draw.choice([1, 2, 15]))
        ]
        if len(operations) == 1:
            store.base.put_one(TABLE, *operations[0], before_images=True)
        else:
            apply(store, operations)
        rows.update(operations)
        assert store.base.count(TABLE) == sum(value is not None for value in rows.values())
    assert store.base.count(TABLE + 1) == 0


def test_a_table_written_without_looking_at_its_rows_is_counted_rightly_or_not_at_all(
    store: Store,
) -> None:
    apply(store, [(b"a", b"1"), (b"b", b"1")], before_images=False)
    apply(store, [(b"b", b"2"), (b"c", b"1")], before_images=False)
    assert store.base.count(TABLE) in (3, None)


def test_operations_that_are_too_large_together_write_nothing(store: Store) -> None:
    half = b"x" * (65 << 20)
    store.base.put_one(TABLE, b"a", half, before_images=True)
    # one operation is never too large
    end = store.base.put_one(TABLE, b"b", half + half, before_images=True).operations
    large: list[list[tuple[bytes, bytes | None]]] = [[(b"c", half), (b"d", half)]]
    if store.history is None:  # the rows before are logged too
        large.append([(b"a", None), (b"b", None)])
    for operations in large:
        with pytest.raises(TooLarge):
            apply(store, operations)
    assert store.base.end() == {"log": end}
    assert store.base.count(TABLE) == 2
    apply(store, [(b"a", b""), (b"c", b"")])
    assert store.base.count(TABLE) == 3


def test_trimming_drops_whole_blocks_at_most_up_to_the_position(store: Store) -> None:
    ends = [apply(store, [(b"k", b"v")] * 4) for _ in range(5)]
    store.base.trim("log", ends[0] - 1)
    assert [block.position for block in log_of(store)] == [0, *ends[:4]]
    store.base.trim("log", ends[2] - 1)
    assert [block.position for block in log_of(store, ends[1])] == ends[1:4]
    store.base.trim("log", ends[1])
    store.base.trim("log", 0)
    assert [block.position for block in log_of(store, ends[1])] == ends[1:4]
    assert rows_of(store) == [(b"k", b"v")]
    assert store.base.cut("log", ends[1], 5) == ends[2]


def test_reading_below_the_trim_point_raises(store: Store) -> None:
    ends = [apply(store, [(b"k", b"v")]) for _ in range(5)]
    store.base.trim("log", ends[1])
    with pytest.raises(Stale, match="trimmed"):
        log_of(store)
    with pytest.raises(Stale, match="trimmed"):
        store.base.cut("log", 0, 10)


def test_a_log_that_was_trimmed_to_its_end_goes_on_from_there(store: Store) -> None:
    for _ in range(600):
        end = store.base.put_one(TABLE, b"k", b"v", True).operations
    store.base.trim("log", end + 100)
    assert store.base.end() == {"log": end}
    assert log_of(store, end) == []
    assert store.base.cut("log", end, 5) == end
    with pytest.raises(Stale):
        log_of(store, end - 1)
    assert store.base.put_one(TABLE, b"k", b"w", True).operations == end + 1
    assert [block.position for block in log_of(store, end)] == [end]


def test_trimming_that_overtakes_a_read_makes_it_raise(store: Store) -> None:
    for _ in range(1000):
        store.base.put_one(TABLE, b"k", b"v", True)
    reading = store.base.read_log("log", 0, 1000)
    seen = [next(reading).position]
    store.base.trim("log", 1000)
    with pytest.raises(Stale):
        seen.extend(block.position for block in reading)
    assert seen == list(range(len(seen)))


def test_dropping_a_base_table_keeps_its_log_and_other_tables(store: Store) -> None:
    apply(store, [(b"%05d" % i, b"v") for i in range(25_000)])
    apply(store, [(b"a", b"o")], table=OTHER)
    with store.base.snapshot() as before:
        store.base.drop(TABLE)
        store.base.drop(TABLE)
        assert len(flat(before.scan(TABLE))) == 25_000  # it was dropped after this snapshot
    assert rows_of(store, OTHER) == [(b"a", b"o")]
    assert len(log_of(store)[0].keys) == 25_000


@pytest.mark.parametrize("removed", [False, True])
def test_a_dropped_base_table_is_neither_read_nor_written(store: Store, removed: bool) -> None:
    end = apply(store, [(b"k", b"1")])
    store.base.drop(TABLE)
    assert not (removed and store.base.reclaim(60))
    with store.base.snapshot() as snapshot:
        reads: list[Callable[[], object]] = [
            lambda: snapshot.get(TABLE, b"k"),
            lambda: snapshot.get_many(TABLE, binary(b"k")),
            lambda: flat(snapshot.scan(TABLE)),
        ]
        for read in reads:
            with pytest.raises(Dropped):
                read()
    for images in (True, False):
        with pytest.raises(Dropped):
            apply(store, [(b"k", b"2")], before_images=images)
        with pytest.raises(Dropped):
            store.base.put_one(TABLE, b"k", None, images)
    with pytest.raises(Dropped):
        store.base.write(TABLE, binary(b"k"), binary(b"2"), True, unless_after=at(0))
    assert store.base.end() == {"log": end}
    assert apply(store, [(b"k", b"1")], table=OTHER) == end + 1


def test_a_table_that_was_never_written_can_be_dropped(store: Store) -> None:
    store.base.drop(TABLE)
    with pytest.raises(Dropped):
        apply(store, [(b"k", b"1")])


def test_rows_of_dropped_tables_are_removed_step_by_step(store: Store) -> None:
    for table in (TABLE, OTHER):
        apply(store, [(b"%05d" % i, b"v") for i in range(25_000)], table=table)
        store.base.drop(table)
    apply(store, [(b"a", b"1")], table=OTHER + 1)
    steps = 0
    while store.base.reclaim(0):
        steps += 1
        assert steps < 100
    assert not store.base.reclaim(60)
    assert rows_of(store, OTHER + 1) == [(b"a", b"1")]


def test_an_unknown_stream_is_refused(store: Store) -> None:
    assert store.base.streams() == ("log",)
    for call in (
        lambda: list(store.base.read_log("nolog", 0, 1)),
        lambda: store.base.cut("nolog", 0, 1),
        lambda: store.base.trim("nolog", 0),
    ):
        with pytest.raises(StoreError, match="nolog"):
            call()


# ---------------------------------------------------------------- state tables: attempts


def test_an_attempt_reads_as_of_the_epoch_before(store: Store) -> None:
    write_epoch(store, 1, {b"a": b"1", b"b": b"1"})
    write_epoch(store, 2, {b"a": b"2", b"b": None, b"c": b"2"})
    shard = store.state.shard(0, 3)
    assert (shard.slot, shard.epoch) == (0, 3)
    assert shard.get_many(TABLE, binary(b"a", b"b", b"c", b"d")).to_pylist() == [
        b"2",
        None,
        b"2",
        None,
    ]
    assert list(shard.scan(TABLE, b"", None)) == [(b"a", b"2"), (b"c", b"2")]
    assert list(shard.scan(TABLE, b"", None, reverse=True)) == [(b"c", b"2"), (b"a", b"2")]
    assert flat(shard.scan_batches(TABLE, b"", None)) == [(b"a", b"2"), (b"c", b"2")]
    shard.close()


def test_many_keys_are_found_in_the_order_in_which_they_are_asked_for(store: Store) -> None:
    """Some are absent, deleted, asked for twice, or the beginning of another."""
    kept: dict[bytes, bytes | None] = {b"%d" % i: b"v%d" % i for i in range(0, 3_000, 2)}
    write_epoch(store, 1, kept)
    write_epoch(store, 2, {b"%d" % i: None for i in range(0, 3_000, 10)})
    asked = [b"%d" % (i * 7 % 3_001) for i in range(4_000)]
    found = store.state.shard(0, 3).get_many(TABLE, binary(*asked)).to_pylist()
    assert found == [None if int(key) % 10 == 0 else kept.get(key) for key in asked]
    before = store.state.shard(0, 2).get_many(TABLE, binary(*asked)).to_pylist()
    assert before == [kept.get(key) for key in asked]


def test_reads_are_the_same_before_during_and_after_another_attempt_of_the_epoch(
    store: Store,
) -> None:
    write_epoch(store, 1, {b"%03d" % i: b"old%d" % i for i in range(0, 300, 2)})
    shard = store.state.shard(0, 2)

    def everything() -> list[object]:
        return [
            shard.get_many(TABLE, binary(*(b"%03d" % i for i in range(300)))).to_pylist(),
            list(shard.scan(TABLE, b"", None)),
            list(shard.scan(TABLE, b"", None, reverse=True)),
            list(shard.scan(TABLE, b"050", b"151")),
            list(shard.scan(TABLE, b"050", b"151", reverse=True)),
            flat(shard.scan_batches(TABLE, b"", None, batch=11)),
            flat(shard.scan_batches(TABLE, b"100", b"1005")),
            under(shard, [b"00", b"05", b"1", b"29"]),
            under(shard, [b"00", b"05", b"1", b"29"], limit=3, batch=2),
            under(shard, [b""], batch=7),
        ]

    first = everything()
    write_epoch(
        store,
        2,
        {b"%03d" % i: None if i % 3 == 0 else b"new%d" % i for i in range(0, 300, 5)}
        | {b"000": None, b"299x": b"new"},
    )
    assert everything() == first
    assert as_of(store, 2) != as_of(store, 1)


def test_lazy_scans_go_on_while_another_attempt_of_the_epoch_commits(store: Store) -> None:
    write_epoch(store, 1, {b"%05d" % i: b"v" for i in range(20_000)})
    scan = store.state.shard(0, 2).scan(TABLE, b"", None)
    backwards = store.state.shard(0, 2).scan(TABLE, b"", None, reverse=True)
    seen, seen_backwards = [next(scan)], [next(backwards)]
    write_epoch(
        store,
        2,
        {b"%05d" % i: None for i in range(20_000)}
        | {b"%05dx" % i: b"new" for i in range(0, 20_000, 7)},
    )
    seen.extend(scan)
    seen_backwards.extend(backwards)
    assert [key for key, _ in seen] == [b"%05d" % i for i in range(20_000)]
    assert seen_backwards == seen[::-1]


def test_prefix_scans_go_on_while_another_attempt_of_the_epoch_commits(store: Store) -> None:
    write_epoch(store, 1, {b"%03d/%02d" % (i, j): b"v" for i in range(100) for j in range(i % 20)})
    prefixes = binary(*(b"%03d/" % i for i in range(0, 100, 3)))
    expected = under(store.state.shard(0, 2), prefixes.to_pylist())
    scan = store.state.shard(0, 2).scan_prefixes(TABLE, prefixes, batch=10)
    batches = [next(scan)]
    write_epoch(
        store,
        2,
        {b"%03d/%02d" % (i, j): None if j % 2 else b"new" for i in range(100) for j in range(30)},
    )
    batches += scan
    assert [number for numbers, _, _ in batches for number in numbers.tolist()] == [
        number for number, _, _ in expected
    ]
    assert flat(batch[1:] for batch in batches) == [record[1:] for record in expected]


def test_another_attempt_of_the_epoch_changes_nothing(store: Store) -> None:
    write_epoch(store, 1, {b"a": b"1", b"b": b"1"})
    early = store.state.shard(0, 2)
    buffer(early, {b"a": b"2", b"b": None, b"c": b"2"})
    write_epoch(store, 2, {b"a": b"2", b"b": None, b"c": b"2"})
    early.commit()
    write_epoch(store, 2, {b"a": b"2", b"b": None, b"c": b"2"})
    assert as_of(store, 2) == {b"a": b"2", b"c": b"2"}
    assert as_of(store, 1) == {b"a": b"1", b"b": b"1"}
    assert store.state.count(0, TABLE) == (2, 4)


def test_an_attempt_completes_the_tables_that_another_one_has_not_written(store: Store) -> None:
    write_epoch(store, 1, {b"a": b"1"})
    write_epoch(store, 2, {b"a": b"2"})
    shard = store.state.shard(0, 2)
    buffer(shard, {b"a": b"2"})
    buffer(shard, {b"o": b"2"}, table=OTHER)
    shard.commit()
    assert as_of(store, 2) == {b"a": b"2"}
    assert as_of(store, 1) == {b"a": b"1"}
    assert as_of(store, 2, OTHER) == {b"o": b"2"}
    assert as_of(store, 1, OTHER) == {}


def test_every_read_and_the_commit_of_a_late_attempt_raise(slot_store: Store) -> None:
    store = slot_store
    write_epoch(store, 1, {b"a": b"1"})
    shard = store.state.shard(0, 2)
    buffer(shard, {b"z": b"late"})
    write_epoch(store, 2, {b"a": b"2"})
    assert shard.get_many(TABLE, binary(b"a")).to_pylist() == [b"1"]
    write_epoch(store, 3, {b"a": b"3"})
    for call in (
        lambda: shard.get_many(OTHER, binary(b"a")),
        lambda: list(shard.scan(OTHER, b"", None)),
        lambda: list(shard.scan(OTHER, b"", None, reverse=True)),
        lambda: list(shard.scan_batches(OTHER, b"", None)),
        lambda: list(shard.scan_prefixes(OTHER, binary(b"a"))),
        lambda: list(shard.scan_prefixes(OTHER, binary())),
        shard.commit,
        store.state.shard(0, 1).commit,
    ):
        with pytest.raises(Stale):
            call()
    assert as_of(store, 3) == {b"a": b"3"}
    assert store.state.shard(1, 2).get_many(TABLE, binary(b"a")).to_pylist() == [None]


def test_nothing_is_written_before_the_commit_or_without_it(store: Store) -> None:
    shard = store.state.shard(0, 1)
    buffer(shard, {b"a": b"1"})
    assert as_of(store, 1) == {}
    shard.close()
    assert as_of(store, 1) == {}
    assert store.state.status(0).write_floor == 0


def test_a_commit_is_all_or_nothing_over_its_tables(slot_store: Store) -> None:
    store = slot_store
    shard = store.state.shard(0, 1)
    buffer(shard, {b"a": b"1"})
    buffer(shard, {b"o": b"1"}, table=OTHER)
    write_epoch(store, 2, {b"other": b"2"}, table=9)
    with pytest.raises(Stale):
        shard.commit()
    assert (as_of(store, 2), as_of(store, 2, OTHER)) == ({}, {})


def test_a_table_is_written_at_most_once_per_shard(store: Store) -> None:
    shard = store.state.shard(0, 1)
    buffer(shard, {b"a": b"1"})
    with pytest.raises(StoreError, match="twice"):
        buffer(shard, {b"b": b"1"})


def test_a_write_may_be_empty_or_sliced(store: Store) -> None:
    shard = store.state.shard(0, 1)
    shard.write(Write(TABLE, binary(), binary(), binary()))
    keys, values, before = (
        binary(b"0", b"a", b"b", b"z"),
        binary(None, b"1", b"2", None),
        binary(b"x", None, None, b"x"),
    )
    shard.write(Write(OTHER, keys.slice(1, 2), values.slice(1, 2), before.slice(1, 2)))
    shard.commit()
    assert as_of(store, 1) == {}
    assert as_of(store, 1, OTHER) == {b"a": b"1", b"b": b"2"}
    write_epoch(store, 2, {b"a": None}, OTHER)
    assert as_of(store, 1, OTHER) == {b"a": b"1", b"b": b"2"}


def test_scans_start_at_the_first_or_last_record_of_a_range(store: Store) -> None:
    keys = [b"", b"\x00", *(b"g%03d" % i for i in range(100)), b"\xff\xff"]
    write_epoch(store, 1, {key: b"v" + key for key in keys})
    write_epoch(store, 1, {b"x": b"other table"}, OTHER)
    write_epoch(store, 1, {b"x": b"other table"}, TABLE - 1)
    shard = store.state.shard(0, 2)
    for low, high in [
        (b"", None),
        (b"g010", b"g050"),
        (b"g", b"h"),
        (b"h", None),
        (b"h", b"i"),
        (b"z", b"a"),
        (b"g050", b"g050\x00"),
    ]:
        inside = [(key, b"v" + key) for key in keys if low <= key and (high is None or key < high)]
        assert list(shard.scan(TABLE, low, high)) == inside
        assert list(shard.scan(TABLE, low, high, reverse=True)) == inside[::-1]
        assert next(shard.scan(TABLE, low, high), None) == next(iter(inside), None)
        assert flat(shard.scan_batches(TABLE, low, high, batch=3)) == inside
        assert flat(store.state.reader(0, 1).scan(TABLE, low, high, batch=3)) == inside


def test_prefix_scans_give_the_records_of_each_prefix_and_its_number(store: Store) -> None:
    sizes = {b"a": 3, b"b": 0, b"c": 700, b"c\x00": 1, b"d": 40, b"\xfe\xff": 5, b"\xff": 2}
    keys = sorted(
        {name + b"|%04d" % i for name, size in sizes.items() for i in range(size)}
        | {b"e", b"e\xff", b"e\xff\xff", b"f"}
    )
    write_epoch(store, 1, {key: b"v" + key for key in keys})
    write_epoch(store, 1, {b"a|x": b"other table"}, OTHER)
    write_epoch(store, 1, {b"a|x": b"other table"}, TABLE - 1)
    shard = store.state.shard(0, 2)
    long = b"c" + b"\xfe" * 600  # longer than a store's keys
    several, odd = (
        [b"a", b"b", b"c", b"d|", b"e", b"e\xff", b"f"],
        [
            b"c\x00|",
            b"c|03",
            long,
            b"c\xff",
            b"\xfe",
            b"\xff",
        ],
    )
    for prefixes in ([b""], several, odd, [b"b"], [b"g", b"h"], [keys[0], keys[9], keys[-1]]):
        for limit, batch in [(None, 100_000), (None, 3), (1, 100_000), (5, 4), (64, 100), (0, 10)]:
            found = under(shard, prefixes, limit, batch)
            inside = [
                [(i, key, b"v" + key) for key in keys if p <= key < p + b"\xff"][:limit]
                for i, p in enumerate(prefixes)
            ]
            assert found == [record for part in inside for record in part]
    assert under(shard, [b"a"], table=LAST_TABLE) == []
    write_epoch(store, 2, {b"a": b"1", b"\xff\x00": b"2"}, LAST_TABLE)
    assert under(store.state.shard(0, 3), [b"", b"\xff"], table=LAST_TABLE) == [
        (0, b"a", b"1"),
        (1, b"\xff\x00", b"2"),
    ]


def test_slots_are_apart(store: Store) -> None:
    assert store.state.slots == 2
    write_epoch(store, 1, {b"a": b"0"}, slot=0)
    write_epoch(store, 5, {b"a": b"1"}, slot=1)
    assert (as_of(store, 5, slot=0), as_of(store, 5, slot=1)) == ({b"a": b"0"}, {b"a": b"1"})
    assert store.state.status(0).write_floor <= 1


def test_an_epoch_may_skip_a_slot(store: Store) -> None:
    write_epoch(store, 1, {b"a": b"1"})
    store.state.shard(0, 2).commit()
    write_epoch(store, 7, {b"a": b"7"})
    assert [as_of(store, epoch)[b"a"] for epoch in range(1, 9)] == [b"1"] * 6 + [b"7"] * 2


# ---------------------------------------------------------------- state tables: readers and collection


def test_readers_see_every_epoch_that_is_kept(store: Store) -> None:
    contents: dict[int, dict[bytes, bytes]] = {0: {}}
    for epoch in range(1, 8):
        changes = {
            b"%d" % (i % 13): None if (i + epoch) % 4 == 0 else b"%d" % epoch
            for i in range(epoch * 2, epoch * 5)
        }
        write_epoch(store, epoch, changes)
        merged = contents[epoch - 1] | changes
        contents[epoch] = {key: value for key, value in merged.items() if value is not None}
    for epoch, expected in contents.items():
        reader = store.state.reader(0, epoch)
        keys = [b"%d" % i for i in range(15)]
        assert dict(flat(reader.scan(TABLE))) == expected
        assert flat(reader.scan(TABLE, b"1", b"2")) == sorted(
            item for item in expected.items() if b"1" <= item[0] < b"2"
        )
        assert [get_one(store, epoch, key) for key in keys] == [expected.get(key) for key in keys]
        assert reader.get_many(TABLE, binary(*keys)).to_pylist() == [
            expected.get(key) for key in keys
        ]
        reader.close()


def test_differences_of_two_epochs_are_those_of_what_readers_see(store: Store) -> None:
    random.seed(7)
    contents: dict[int, dict[bytes, bytes]] = {0: {}}
    for epoch in range(1, 9):
        keys = random.sample(range(40), random.randrange(12))
        changes = {b"%d" % key: random.choice([None, b"x", b"%d" % epoch]) for key in keys}
        write_epoch(store, epoch, changes)
        merged = contents[epoch - 1] | changes
        contents[epoch] = {key: value for key, value in merged.items() if value is not None}
    for low in range(9):
        for high in range(low, 9):
            old, new = contents[low], contents[high]
            expected = {
                key: (old.get(key), new.get(key))
                for key in old.keys() | new.keys()
                if old.get(key) != new.get(key)
            }
            found = [
                triple
                for batch in store.state.differences(0, TABLE, low, high)
                for triple in zip(*(column.to_pylist() for column in batch), strict=True)
            ]
            assert {key: (before, after) for key, before, after in found} == expected
            assert len(found) == len(expected)


def test_differences_from_an_epoch_that_is_gone_are_refused(slot_store: Store) -> None:
    for epoch in range(1, 4):
        write_epoch(slot_store, epoch, {b"a": b"%d" % epoch})
    collect(slot_store, 2)
    assert len(list(slot_store.state.differences(0, TABLE, 2, 3))) == 1
    with pytest.raises(Stale):
        list(slot_store.state.differences(0, TABLE, 1, 3))


def test_a_reader_stays_where_it_is_while_epochs_pass(store: Store) -> None:
    write_epoch(store, 1, {b"a": b"1"})
    reader = store.state.reader(0, 1)
    for epoch in range(2, 6):
        write_epoch(store, epoch, {b"a": b"%d" % epoch, b"b%d" % epoch: b"x"})
        assert get_one(store, 1, b"a") == b"1"
        assert reader.get_many(TABLE, binary(b"b2", b"a")).to_pylist() == [None, b"1"]
        assert flat(reader.scan(TABLE)) == [(b"a", b"1")]


def test_a_reader_does_not_see_the_epoch_that_is_being_written(store: Store) -> None:
    write_epoch(store, 1, {b"a": b"1", b"b": b"1"})
    write_epoch(store, 2, {b"a": None, b"c": b"2"})
    assert [get_one(store, 1, key) for key in (b"a", b"b", b"c", b"d")] == [b"1", b"1", None, None]
    assert store.state.getter(OTHER)(0, 1, b"a") is None


def test_collecting_raises_the_floors_and_readers_below_raise(slot_store: Store) -> None:
    store = slot_store
    for epoch in range(1, 6):
        write_epoch(
            store, epoch, {b"a": b"%d" % epoch, b"t": None if epoch == 2 else b"%d" % epoch}
        )
    reader = store.state.reader(0, 2)
    collect(store, 3)
    status = store.state.status(0)
    assert (status.slot, status.write_floor, status.history_floor) == (0, 5, 3)
    assert status.bytes > 0
    for call in (
        lambda: get_one(store, 2, b"a"),
        lambda: reader.get_many(TABLE, binary(b"a")),
        lambda: list(reader.scan(TABLE)),
        lambda: get_one(store, 0, b"a"),
    ):
        with pytest.raises(Stale, match="too old"):
            call()
    assert [as_of(store, epoch)[b"a"] for epoch in (3, 4, 5, 6)] == [b"3", b"4", b"5", b"5"]


def test_collecting_closes_epochs_up_to_it_even_if_nothing_was_written(slot_store: Store) -> None:
    store = slot_store
    write_epoch(store, 1, {b"a": b"1"})
    late = store.state.shard(0, 3)
    collect(store, 4)
    status = store.state.status(0)
    assert (status.write_floor, status.history_floor) == (4, 4)
    with pytest.raises(Stale):
        late.get_many(TABLE, binary(b"a"))
    with pytest.raises(Stale):
        late.commit()
    with pytest.raises(Stale):  # as of 3, which an attempt of 4 would read, cannot be read any more
        store.state.shard(0, 4).get_many(TABLE, binary(b"a"))
    write_epoch(store, 5, {b"a": b"5"})
    assert (as_of(store, 4), as_of(store, 5)) == ({b"a": b"1"}, {b"a": b"5"})


def test_collecting_never_lowers_a_floor_and_is_idempotent(slot_store: Store) -> None:
    store = slot_store
    for epoch in range(1, 4):
        write_epoch(store, epoch, {b"a": b"%d" % epoch})
    collect(store, 2)
    collect(store, 1)
    collect(store, 2)
    status = store.state.status(0)
    assert (status.write_floor, status.history_floor) == (3, 2)
    assert as_of(store, 2) == {b"a": b"2"}


def test_a_retry_of_an_epoch_after_collecting_the_one_before_reads_the_same(store: Store) -> None:
    write_epoch(store, 1, {b"a": b"1", b"b": b"1"})
    write_epoch(store, 2, {b"a": b"2", b"b": None})
    collect(store, 1)
    shard = store.state.shard(0, 2)
    assert shard.get_many(TABLE, binary(b"a", b"b")).to_pylist() == [b"1", b"1"]
    buffer(shard, {b"a": b"2", b"b": None})
    shard.commit()
    assert as_of(store, 2) == {b"a": b"2"}


def test_a_dropped_state_table_is_gone_and_others_stay(store: Store) -> None:
    write_epoch(store, 1, {b"%05d" % i: b"v" for i in range(25_000)})
    write_epoch(store, 1, {b"a": b"o"}, OTHER)
    write_epoch(store, 2, {b"00001": None})
    steps = 0
    while not store.state.drop(0, TABLE, 0):
        steps += 1
        assert steps < 100
    assert store.state.drop(0, TABLE)
    assert (as_of(store, 2), as_of(store, 1), store.state.count(0, TABLE)) == ({}, {}, (0, 0))
    assert as_of(store, 2, OTHER) == {b"a": b"o"}


def test_counts_are_those_of_the_newest_records(store: Store) -> None:
    write_epoch(store, 1, {b"a": b"123", b"bb": b"", b"c": b"1"})
    assert store.state.count(0, TABLE) == (3, 8)
    write_epoch(store, 2, {b"a": b"1", b"c": None, b"none": None})
    assert store.state.count(0, TABLE) == (2, 4)
    assert store.state.count(0, OTHER) == (0, 0)


def test_an_empty_value_is_not_an_absent_one(store: Store) -> None:
    write_epoch(store, 1, {b"a": b""})
    write_epoch(store, 2, {b"a": b"2"})
    assert get_one(store, 1, b"a") == b""
    assert as_of(store, 1) == {b"a": b""}
    apply(store, [(b"a", b""), (b"a", b"")])
    (block,) = log_of(store)
    assert images_of(store, block) == [None, b""]
    assert rows_of(store) == [(b"a", b"")]


def test_sync_can_be_called_at_any_time(store: Store) -> None:
    store.state.sync(0)
    write_epoch(store, 1, {b"a": b"1"})
    store.state.sync(0)
    assert as_of(store, 1) == {b"a": b"1"}
