"""Conditions on keys in joins, subqueries and set operations; what may raise; what LIMIT reads."""

from __future__ import annotations

from typing import Any

import pytest

import belvedere
from belvedere.database import Database
from belvedere.encoding import slot_of
from belvedere.errors import SqlError
from belvedere.readers.rows import ViewRows
from tests.unit.counting import counted

ROWS = 1_000
BATCH = 1_024  # rows that a LIMIT with a condition looks at first


@pytest.fixture(scope="module", params=["memory:", "embedded"])
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = request.param
    if place == "embedded":
        place = str(tmp_path_factory.mktemp("keyed") / "db")
    with belvedere.open(place, slots=4) as opened:
        yield filled(opened)


def filled(db: Database) -> Database:
    from belvedere.epochs.local import LocalRunner

    db._runner = LocalRunner(db.store)
    db.sql("CREATE TABLE a (id INT, b INT, n INT, PRIMARY KEY (id))")
    db.sql("CREATE TABLE b (id INT, day INT, n INT, PRIMARY KEY (id, day))")
    db.sql("CREATE TABLE c (id INT, n INT, PRIMARY KEY (id)) WITH (before_images = false)")
    db.table("a").put_many([{"id": i, "b": i % 10, "n": i % 7} for i in range(ROWS)])
    db.table("b").put_many([{"id": i // 100, "day": i % 100, "n": i % 3} for i in range(ROWS)])
    db.table("c").put_many([{"id": i, "n": i} for i in range(ROWS)])
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM a")
    db.sql("CREATE MATERIALIZED VIEW by_b WITH (key = 'b') AS SELECT b, id FROM a")
    db.catch_up()
    return db


def read_by(db: Database, statement: str) -> int:
    """How many records a query reads; its answer is that of reading everything."""
    with counted(db) as counter:
        found = db.sql(statement).to_pylist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("belvedere.sql.query.ranges_in", lambda *_: {})
        assert sorted(map(repr, found)) == sorted(map(repr, db.sql(statement).to_pylist()))
    return counter.rows


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT * FROM a WHERE id = 7", 1),
        ("SELECT * FROM a AS x WHERE X.ID = 7", 1),
        ("SELECT count(*) AS n FROM a WHERE id < 10", 10),
        ("SELECT n, count(*) AS m FROM a WHERE id IN (1, 2, 5000) GROUP BY n", 2),
        ("SELECT * FROM b WHERE id = 3 AND day BETWEEN 10 AND 12", 3),
        ("SELECT * FROM b WHERE day BETWEEN 10 AND 12 AND id IN (3, 4)", 6),
        ("SELECT * FROM b WHERE id >= 8", 200),
        ("SELECT * FROM b WHERE day = 1", ROWS),
        ("SELECT * FROM a WHERE id = 1 OR id = 2", 2),
        ("SELECT n + 1 AS m FROM a WHERE n >= 0 AND (id = 1 OR id IN (2, 3) OR id > 997)", 5),
        ("SELECT n + 1 AS m FROM b WHERE (id = 3 AND day = 13) OR (id = 4 AND day < 2)", 3),
        ("SELECT * FROM a WHERE id = 1 OR n = 2", ROWS),
        ("SELECT * FROM a WHERE id = 1 OR 10 DIV (n + 1) = 2", ROWS),
        ("SELECT * FROM a WHERE id = NULL", 0),
        ("SELECT * FROM a WHERE id IS NULL", 0),
        ("SELECT * FROM a WHERE id = 7 AND id = 8", 0),
        # every place where a relation stands counts
        ("SELECT * FROM a WHERE id = 7 UNION ALL SELECT * FROM a WHERE id = 8", 2),
        ("SELECT * FROM a WHERE id = 7 UNION ALL SELECT * FROM a", ROWS),
        ("SELECT * FROM (SELECT * FROM a WHERE id < 3) WHERE n = 1", 3),
        ("WITH a7 AS (SELECT * FROM a WHERE id = 7) SELECT * FROM a7 JOIN v ON v.id = a7.id", 1001),
        ("WITH a AS (SELECT id FROM v) SELECT * FROM a WHERE id = 7", ROWS),
        ("SELECT n FROM v WHERE id = (SELECT max(id) FROM a WHERE id < 5)", 1005),
        # joins
        ("SELECT a.n FROM a JOIN b ON a.b = b.id WHERE a.id = 7 AND b.id = 7", 101),
        ("SELECT a.n FROM a JOIN b ON a.b = b.id AND b.id = 7 AND a.id < 5", 105),
        ("SELECT a.n FROM a, b WHERE a.b = b.id AND a.id = 7 AND b.id = 7 AND day = 3", 2),
        ("SELECT a.n, day FROM a LEFT JOIN b ON a.b = b.id AND b.id = 2 WHERE a.id < 5", 105),
        ("SELECT a.n, day FROM a LEFT JOIN b ON a.b = b.id AND a.id < 5", 2 * ROWS),
        ("SELECT a.n, day FROM a RIGHT JOIN b ON a.b = b.id AND a.id < 5", ROWS + 5),
        ("SELECT a.n, day FROM a FULL JOIN b ON a.b = b.id AND a.id < 5 AND b.id = 2", 2 * ROWS),
        ("SELECT a.n, day FROM a FULL JOIN b ON a.b = b.id WHERE a.id < 5", ROWS + 5),
        ("SELECT a.n FROM a LEFT JOIN b ON a.b = b.id WHERE b.id IS NULL", 2 * ROWS),
        ("SELECT a.n FROM a LEFT SEMI JOIN b ON a.b = b.id AND b.id = 2", ROWS + 100),
        ("SELECT a.n FROM a LEFT ANTI JOIN b ON a.b = b.id AND b.id = 2 AND a.id < 5", ROWS + 100),
        ("SELECT a.n FROM a JOIN v USING (id) WHERE a.id = 7", ROWS + 1),
        # views, and tables at the cut of views
        ("SELECT * FROM v WHERE id = 7", 1),
        ("SELECT * FROM v WHERE id BETWEEN 7 AND 9", 3),
        ("SELECT * FROM by_b WHERE b = 3", 100),
        ("SELECT * FROM by_b WHERE b = 3 AND id < 100", 10),
        ("SELECT v.n, a.b FROM v JOIN a ON a.id = v.id WHERE a.id = 7 AND v.id = 7", 2),
        ("SELECT v.n, c.n FROM v JOIN c ON c.id = v.id WHERE c.id IN (7, 8) AND v.id = 7", 3),
    ],
)
def test_only_the_keys_of_the_condition_are_read(db: Database, statement: str, rows: int) -> None:
    assert read_by(db, statement) == rows


def test_a_fixed_owner_is_read_from_one_slot(db: Database) -> None:
    for statement, view, owner in [
        ("SELECT * FROM v WHERE id = 7", "v", (7,)),
        ("SELECT * FROM by_b WHERE b = 3", "by_b", (3,)),
        ("SELECT * FROM by_b WHERE id = 13 AND b = 3", "by_b", (3,)),
    ]:
        with counted(db) as counter:
            assert db.sql(statement).to_pylist()
        key = ViewRows.of(db.state().view(view)).owner(owner)
        assert counter.slots == {slot_of(key or b"", 4)}
    with counted(db) as counter:
        assert len(db.sql("SELECT * FROM v WHERE id < 3").to_pylist()) == 3
    assert (counter.rows, counter.slots) == (3, {0, 1, 2, 3})


def test_rows_as_of_the_cut_are_read_by_key_too(db: Database) -> None:
    """What was written after the cut is taken back, within the range."""
    db.sql("UPDATE a SET n = 100 WHERE id = 7")
    db.table("a").delete(8)
    try:
        by_key = "SELECT a.id, a.n FROM a JOIN v ON v.id = a.id WHERE a.id IN (7, 8) AND v.id < 9"
        assert read_by(db, by_key) <= 9 + 2
        assert sorted(tuple(r.values()) for r in db.sql(by_key)) == [(7, 0), (8, 1)]
    finally:
        db.sql("INSERT INTO a VALUES (7, 7, 0), (8, 8, 1)")
        db.catch_up()


@pytest.mark.parametrize(
    ("condition", "fails"),
    [
        ("id = 7 AND 1 / (id - 8) < 5", False),
        ("1 / (id - 8) < 5 AND id = 7", True),
        ("n = 0 AND id = 7 AND 1 / (id - 8) < 5", False),
        ("id IN (7, NULL) AND 1 / (id - 8) < 5", True),
        ("id = 8 AND 1 / (id - 8) < 5", True),
        ("id = 'x' AND id = 7", True),
    ],
)
def test_what_raises_without_the_key_raises_with_it(
    db: Database, condition: str, fails: bool
) -> None:
    for statement in (f"SELECT id FROM a WHERE {condition}", f"DELETE FROM a WHERE {condition}"):
        if fails:
            with pytest.raises(SqlError):
                db.sql(statement).to_pylist()
        else:
            with counted(db) as counter:
                db.sql(statement).to_pylist()
            assert counter.rows == 1
    if not fails:
        db.sql("INSERT INTO a VALUES (7, 7, 0)")
        db.catch_up()


def test_an_update_by_key_reads_and_writes_that_row(db: Database) -> None:
    for statement, said in [
        ("UPDATE a SET n = n + 1 WHERE id = 7", "1 row(s) updated"),
        ("UPDATE a SET n = n - 1 WHERE 7 = id", "1 row(s) updated"),
        ("UPDATE b SET n = n WHERE id = 7 AND day >= 98", "2 row(s) updated"),
        ("DELETE FROM a WHERE id > 5000", "0 row(s) deleted"),
        ("DELETE FROM a AS x WHERE x.id = 5000", "0 row(s) deleted"),
    ]:
        with counted(db) as counter:
            assert str(db.sql(statement)) == said
        assert counter.rows == counter.written == int(said.split()[0])
    db.catch_up()


@pytest.mark.parametrize(
    ("statement", "least", "most"),
    [
        ("SELECT * FROM a LIMIT 5", 5, 5),
        ("SELECT id + 1 AS i FROM a LIMIT 5 OFFSET 3", 8, 8),
        ("SELECT * FROM a LIMIT 0", 0, 0),
        ("SELECT * FROM a WHERE id > 900 LIMIT 5", 5, 99),
        ("SELECT * FROM v LIMIT 5", 5, 5),
        ("SELECT * FROM v WHERE n = 3 LIMIT 5", 5, BATCH),
        ("SELECT * FROM a LIMIT ALL", ROWS, ROWS),
        ("SELECT DISTINCT n FROM a LIMIT 2", ROWS, ROWS),
        ("SELECT * FROM a ORDER BY n LIMIT 2", ROWS, ROWS),
        ("SELECT count(*) AS n FROM a LIMIT 2", ROWS, ROWS),
        ("SELECT row_number() OVER (ORDER BY n) AS r FROM a LIMIT 2", ROWS, ROWS),
    ],
)
def test_a_limit_reads_as_much_as_it_needs(
    db: Database, statement: str, least: int, most: int
) -> None:
    with counted(db) as counter:
        found = db.sql(statement).to_pylist()
    assert least <= counter.rows <= most
    every = [repr(row) for row in db.sql(statement.split(" LIMIT")[0]).to_pylist()]
    skipped = 3 if "OFFSET" in statement else 0
    limit = statement.split("LIMIT ")[1].split()[0]
    wanted = len(every) if limit == "ALL" else min(int(limit), len(every) - skipped)
    assert len(found) == wanted
    for row in map(repr, found):
        every.remove(row)  # each is a row of the unlimited answer, and as often


def test_a_view_that_is_replaced_by_one_with_another_key_is_read_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between planning and reading: a session that waits for its writes may wait long."""
    with belvedere.open("memory:", slots=2) as db:
        db.sql("CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b))")
        db.table("t").put_many([{"a": i, "b": 10 - i} for i in range(10)])
        db.sql("CREATE MATERIALIZED VIEW w WITH (key = 'a') AS SELECT a, b FROM t")
        db.catch_up()

        def replace() -> None:
            db.sql("CREATE OR REPLACE MATERIALIZED VIEW w WITH (key = 'b') AS SELECT a, b FROM t")
            db.catch_up()

        monkeypatch.setattr(db, "await_session", replace)
        assert db.sql("SELECT b FROM w WHERE a = 3").to_pylist() == [{"b": 7}]
        assert db.state().view("w").schema.key == ("b", "a")


def test_a_limit_stops_at_the_rows_that_it_needs_however_many_there_are() -> None:
    with belvedere.open("memory:") as db:
        db.sql("CREATE TABLE t (id INT, n INT, PRIMARY KEY (id))")
        db.table("t").put_many([{"id": i, "n": i % 100} for i in range(50_000)])
        for count in (1, 20, 100):
            with counted(db) as counter:
                found = db.sql(f"SELECT id FROM t WHERE n = 99 LIMIT {count}").to_pylist()
            assert len(found) == count
            assert counter.rows <= 9 * 100 * count + BATCH
        with counted(db) as counter:
            assert db.sql("SELECT id FROM t WHERE n = 100 LIMIT 1").to_pylist() == []
        assert counter.rows == 50_000


def test_many_keys_are_looked_up_and_too_many_are_one_range() -> None:
    with belvedere.open("memory:") as db:
        db.sql("CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b))")
        db.table("t").put_many([{"a": i, "b": j} for i in range(0, 300, 2) for j in range(20)])
        listed = ", ".join(map(str, range(100, 300)))
        with counted(db) as counter:
            found = db.sql(f"SELECT * FROM t WHERE a IN ({listed}) AND b IN (3, 4, 50)").to_pylist()
        assert len(found) == counter.rows == 200
        more = ", ".join(str(number) for number in range(200) if number != 10)
        with counted(db) as counter:
            found = db.sql(f"SELECT * FROM t WHERE a IN ({listed}) AND b IN ({more})").to_pylist()
        assert len(found) == 100 * 19
        assert counter.rows == 100 * 20  # all that lies between the first b and the last
