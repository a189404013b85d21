"""Transactions over several tables: as if they were done one after the other, or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere import collected
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import (
    BelvedereError,
    CatalogError,
    Dropped,
    RowConflict,
    SchemaError,
    SqlError,
    StoreError,
    TransactionError,
)
from belvedere.transaction import Transaction

TABLES = ("a", "b")
KEYS = range(6)
Rows = dict[tuple[str, int], int]  # by table and key


@pytest.fixture(params=["memory", "embedded"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = "memory:" if request.param == "memory" else str(tmp_path / "db")
    with belvedere.open(url, slots=2) as opened:
        opened._runner = LocalRunner(opened.store)
        for name in TABLES:
            opened.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)")
        yield opened


def row(key: int, value: int) -> dict[str, int]:
    return {"id": key, "v": value}


def rows_of(db: Database | Transaction) -> Rows:
    return {(name, r["id"]): r["v"] for name in TABLES for r in db.table(name).scan()}


# ---------------------------------------------------------------- a plain model


class Model:
    """A transaction as it should be: a copy of all rows, and what was seen by key."""

    def __init__(self, rows: Rows) -> None:
        self.before, self.now = dict(rows), dict(rows)
        self.written: set[tuple[str, int]] = set()
        self.seen: dict[tuple[str, int], int | None] = {}

    def get(self, at: tuple[str, int]) -> int | None:
        if at not in self.written:
            self.seen[at] = self.before.get(at)
        return self.now.get(at)

    def put(self, at: tuple[str, int], value: int | None) -> None:
        self.written.add(at)
        if value is None:
            self.now.pop(at, None)
        else:
            self.now[at] = value

    def fits(self, rows: Rows) -> bool:
        return all(rows.get(at) == value for at, value in self.seen.items())

    def applied(self, rows: Rows) -> Rows:
        others = {at: value for at, value in rows.items() if at not in self.written}
        return others | {at: self.now[at] for at in self.written & self.now.keys()}


def step(random: random.Random, t: Transaction, model: Model) -> None:
    """One random action in a transaction and in its model."""
    name, key, value = random.choice(TABLES), random.choice(KEYS), random.randrange(100)
    at, table = (name, key), t.table(name)

    def get() -> None:
        expected = model.get(at)
        assert table.get(key) == (None if expected is None else row(key, expected))

    def select() -> None:
        expected = model.get(at)
        found = t.sql(f"SELECT v FROM {name} WHERE id = ?", [key]).to_pylist()
        assert found == ([] if expected is None else [{"v": expected}])

    def scan() -> None:
        assert rows_of(t) == model.now
        assert [r["id"] for r in table.scan()] == sorted(k for n, k in model.now if n == name)

    def total() -> None:
        (found,) = t.sql(f"SELECT sum(v) AS s, count(*) AS n FROM {name}").to_pylist()
        values = [v for (n, _), v in model.now.items() if n == name]
        assert found == {"s": sum(values) if values else None, "n": len(values)}

    def put() -> None:
        table.put(row(key, value))
        model.put(at, value)

    def put_many() -> None:
        some = random.sample(list(KEYS), 3)
        table.put_many([row(k, value + k) for k in some])
        for k in some:
            model.put((name, k), value + k)

    def delete() -> None:
        table.delete(key)
        model.put(at, None)

    def update() -> None:
        old = model.get(at)
        t.sql(f"UPDATE {name} SET v = v + 1 WHERE id = {key}")
        if old is not None:
            model.put(at, old + 1)

    def delete_where() -> None:
        for n, k in [at for at in model.now if at[0] == name and at[1] >= key]:
            model.get((n, k))
            model.put((n, k), None)
        t.sql(f"DELETE FROM {name} WHERE id >= {key}")

    def insert() -> None:
        t.sql(f"INSERT INTO {name} VALUES ({key}, {value})")
        model.put(at, value)

    actions: list[Callable[[], None]] = [get, get, select, scan, total, put, put_many, delete]
    random.choice([*actions, update, delete_where, insert])()


def end_it(db: Database, t: Transaction, model: Model, now: Rows) -> Rows:
    """The rows afterwards; a conflict is one of the rows that it has seen otherwise."""
    end = db.store.base.end()
    if model.fits(now) or not model.written:
        t.commit()
        return model.applied(now)
    with pytest.raises(RowConflict) as found:
        t.commit()
    at = str(found.value.table), found.value.key
    assert model.seen[at] != now.get(at)
    assert db.store.base.end() == end
    return now


@pytest.mark.parametrize("seed", range(25))
def test_random_transactions_are_those_of_a_plain_model(db: Database, seed: int) -> None:
    """Several are open at a time; each is written as if it began where it ends, or says why not."""
    chance = random.Random(seed)
    now: Rows = {}
    for _ in range(4):
        open_ones = [(Transaction(db), Model(now)) for _ in range(3)]
        for t, _ in open_ones:
            assert rows_of(t) == now  # the moment of all its reads
        for _ in range(12):
            step(chance, *chance.choice(open_ones))
        chance.shuffle(open_ones)
        for t, model in open_ones:
            now = end_it(db, t, model, now)
            assert rows_of(db) == now


# ---------------------------------------------------------------- what a user sees


def test_a_transaction_is_written_at_the_end_of_its_block_and_as_one(db: Database) -> None:
    with db.transaction() as t:
        t.table("a").put(row(1, 1))
        t.table("b").put_many([row(1, 2), row(2, 3)])
        t.table("b").delete(1)
        assert t.operations == 4
        assert rows_of(db) == {}
        assert rows_of(t) == {("a", 1): 1, ("b", 2): 3}
    assert rows_of(db) == {("a", 1): 1, ("b", 2): 3}
    assert t.position == db.store.base.end()
    blocks = list(db.store.base.read_log("log", 0, 4))
    assert [block.is_last for block in blocks] == [False, True]


def test_an_exception_in_the_block_writes_nothing(db: Database) -> None:
    end = db.store.base.end()

    def work(t: Transaction) -> None:
        t.table("a").put(row(1, 1))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.transact(work)
    with db.transaction() as t:
        t.table("a").put(row(1, 1))
        t.rollback()
    with db.transaction() as t:
        assert t.table("a").get(1) is None
    assert db.store.base.end() == end
    assert rows_of(db) == {}


def test_a_conflict_names_the_row_that_somebody_else_has_changed(db: Database) -> None:
    db.table("a").put(row(1, 1))

    def work(t: Transaction) -> None:
        t.table("a").get(1)
        db.table("a").put(row(1, 2))
        t.table("b").put(row(7, 7))

    message = r"row of table a with key 1 was changed .*db\.transact"
    with pytest.raises(RowConflict, match=message) as found:
        db.transact(work, retries=0)
    assert (found.value.table, found.value.key) == ("a", 1)
    assert rows_of(db) == {("a", 1): 2}


def test_a_conflict_is_about_what_was_read_only(db: Database) -> None:
    with db.transaction() as t:
        assert t.table("a").get(1) is None
        assert list(t.table("b").scan()) == []
        db.table("a").put(row(2, 2))
        db.table("b").put(row(2, 2))
        t.table("b").put(row(2, 9))  # not read: it is overwritten
    assert rows_of(db) == {("a", 2): 2, ("b", 2): 9}


def test_all_reads_are_of_one_moment(db: Database) -> None:
    db.table("a").put(row(1, 1))
    with db.transaction() as t:
        assert t.table("a").get(1) == row(1, 1)
        db.table("b").put(row(1, 1))
        assert t.table("b").get(1) is None
        assert t.sql("SELECT * FROM b").to_pylist() == []


def test_of_two_that_change_what_both_have_read_one_succeeds(db: Database) -> None:
    db.table("a").put(row(1, 10))
    first, second = Transaction(db), Transaction(db)
    for t in (first, second):
        found = t.table("a").get(1)
        assert found is not None
        t.table("a").put(row(1, found["v"] - 3))
    first.commit()
    with pytest.raises(RowConflict):
        second.commit()
    assert rows_of(db) == {("a", 1): 7}


def test_an_update_is_compared_row_by_row(db: Database) -> None:
    db.table("a").put_many([row(1, 1), row(2, 2)])

    def work(t: Transaction) -> None:
        t.sql("UPDATE a SET v = v + 1 WHERE v < 9")
        db.table("a").put(row(2, 5))

    with pytest.raises(RowConflict) as found:
        db.transact(work, retries=0)
    assert found.value.key == 2
    assert rows_of(db) == {("a", 1): 1, ("a", 2): 5}


def test_transact_repeats_until_nobody_is_faster(db: Database) -> None:
    db.table("a").put(row(1, 0))
    tries: list[int] = []

    def work(t: Transaction) -> int:
        found = t.table("a").get(1)
        assert found is not None
        if len(tries) < 3:
            db.table("a").put(row(1, found["v"] + 10))
        tries.append(found["v"])
        t.table("a").put(row(1, found["v"] + 1))
        return len(tries)

    assert db.transact(work) == 4
    assert tries == [0, 10, 20, 30]
    assert rows_of(db) == {("a", 1): 31}
    tries.clear()
    with pytest.raises(RowConflict):
        db.transact(work, retries=2)
    with pytest.raises(TransactionError, match="retries is -1"):
        db.transact(work, retries=-1)
    with pytest.raises(SchemaError):  # no conflict: once
        db.transact(lambda t: t.table("a").put({"id": 1, "v": "x"}))


def test_a_transaction_that_has_ended_cannot_be_used(db: Database) -> None:
    with db.transaction() as t:
        table = t.table("a")
        table.put(row(1, 1))
    rows = {"id": 2, "v": 2}
    calls: list[Callable[[], Any]] = [
        lambda: table.put(rows),
        lambda: table.put_many([rows]),
        lambda: table.get(1),
        lambda: list(table.scan()),
        lambda: t.table("a"),
        lambda: t.sql("SELECT * FROM a"),
        t.commit,
        t.__enter__,
    ]
    for call in calls:
        with pytest.raises(TransactionError, match="this transaction has ended: begin another"):
            call()
    assert rows_of(db) == {("a", 1): 1}
    t.rollback()  # of what has ended: nothing happens
    assert rows_of(db) == {("a", 1): 1}


def test_another_thread_is_refused_and_the_transaction_goes_on(db: Database) -> None:
    uses: list[Callable[[], object]]
    with db.transaction() as t, ThreadPoolExecutor(1) as elsewhere:
        table = t.table("a")
        table.put(row(1, 1))
        uses = [
            lambda: table.put(row(2, 2)),
            lambda: table.get(1),
            lambda: t.sql("SELECT * FROM a"),
            lambda: t.table("b"),
            t.commit,
        ]
        for use in uses:
            with pytest.raises(TransactionError, match="the thread that began it"):
                elsewhere.submit(use).result()
    assert rows_of(db) == {("a", 1): 1}


@pytest.mark.parametrize("limit", ["LARGEST", "LARGEST_BYTES"])
def test_too_large_a_transaction_is_rolled_back_as_a_whole(
    db: Database, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(collected, limit, 50)

    def work(t: Transaction) -> None:
        t.table("a").put(row(1, 1))
        with pytest.raises(TransactionError, match="a transaction has at most"):
            t.table("a").put_many([row(i, i) for i in range(60)])
        t.table("b").put(row(1, 1))

    with pytest.raises(TransactionError, match="became larger: it was rolled back"):
        db.transact(work)
    assert rows_of(db) == {}


def test_a_call_that_is_refused_leaves_the_transaction_as_it_was(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM a")
    db.catch_up()
    refused: list[tuple[type[BelvedereError], Callable[[Transaction], Any]]] = [
        (SchemaError, lambda t: t.table("a").put({"id": 1, "v": "x"})),
        (SchemaError, lambda t: t.table("a").put_many([row(5, 5), {"id": None, "v": 1}])),
        (CatalogError, lambda t: t.table("none")),
        (SqlError, lambda t: t.sql("UPDATE a SET v = 1 / 0")),
        (SqlError, lambda t: t.sql("SELECT n FROM w")),
        (SqlError, lambda t: t.sql("SELECT w.n, a.v FROM w, a")),
        (SqlError, lambda t: t.sql("INSERT INTO b SELECT n, n FROM w")),
        (TransactionError, lambda t: t.sql("CREATE TABLE c (id INT PRIMARY KEY)")),
        (TransactionError, lambda t: t.sql("DROP TABLE a")),
        (TransactionError, lambda t: t.sql("INSERT INTO a VALUES (8, 8); COMMIT")),
        (TransactionError, lambda t: t.sql("SELECT * FROM a VERSION AS OF 1").to_arrow()),
        (TransactionError, lambda t: t.table("a").get(1, as_of=1)),
    ]
    db.table("a").put(row(4, 4))
    with db.transaction() as t:
        t.table("a").put(row(1, 1))
        for error, call in refused:
            with pytest.raises(error):
                call(t)
        t.table("b").put(row(2, 2))
    assert rows_of(db) == {("a", 1): 1, ("a", 4): 4, ("b", 2): 2}


def test_a_table_that_is_dropped_meanwhile_is_named(db: Database) -> None:

    def work(t: Transaction) -> None:
        t.table("a").put(row(1, 1))
        t.table("b").put(row(1, 1))
        db.sql("DROP TABLE b")

    with pytest.raises(Dropped, match="table b was dropped"):
        db.transact(work)
    assert list(db.table("a").scan()) == []


def test_a_table_that_is_made_again_meanwhile_is_another_one(db: Database) -> None:
    def make_again() -> None:
        db.sql("DROP TABLE b")
        db.sql("CREATE TABLE b (id INT PRIMARY KEY, v INT)")

    with db.transaction() as t:
        t.table("a").put(row(1, 1))
        assert t.table("b").name == "b"  # nothing is done with it
        make_again()
        t.table("b").put(row(2, 2))
    assert rows_of(db) == {("a", 1): 1, ("b", 2): 2}

    def work(t: Transaction) -> None:
        t.table("b").put(row(3, 3))
        make_again()
        t.table("b").put(row(4, 4))

    with pytest.raises(Dropped, match="table b was dropped"):
        db.transact(work)
    assert rows_of(db) == {("a", 1): 1}


def test_a_store_without_transactions_refuses_them() -> None:
    db = belvedere.open("memory:", streams=2)
    with pytest.raises(StoreError, match="no transactions over tables"):
        db.transact(lambda t: t.table("a").get(1))


def test_what_is_too_large_for_the_store_is_refused_as_a_whole(db: Database) -> None:
    db.sql("CREATE TABLE large (id INT PRIMARY KEY, s STRING)")

    def work(t: Transaction) -> None:
        t.table("a").put(row(1, 1))
        t.table("large").put_many([{"id": i, "s": "x" * (7 << 20)} for i in range(20)])

    with pytest.raises(TransactionError, match="at most 1,000,000 operations and 128 MiB"):
        db.transact(work)
    assert rows_of(db) == {}


def test_a_session_waits_for_what_its_transaction_wrote(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM a")
    db.catch_up()
    with db.session(timeout=0) as session:
        with session.transaction() as t:
            t.table("a").put(row(1, 1))
        with pytest.raises(belvedere.errors.Timeout):
            session.view("n").get()
        db.catch_up()
        assert session.view("n").get() == {"n": 1}
