"""Values of all types at their edges, through the log and through answers; what cannot be held."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from belvedere.errors import SourceError
from belvedere.sources.base import Question
from belvedere.sources.mariadb import MariaDBSource, Settings
from belvedere.sources.servers import Server
from tests.sources.mariadb import Copy, Users, all_rows, database, follow_until, rows_of
from tests.sources.mariadb_types import TYPES

pytestmark = pytest.mark.sources

REFUSED = {
    "TIME": "seconds",
    "BIT(2)": "integer",
    "SET('a','b')": "column of its own",
    "DECIMAL(39,0)": "38 digits",
    "UUID": "CHAR",
    "INET6": "VARCHAR",
    "POINT": "convert",
    "VARCHAR(10) CHARACTER SET cp1250": "utf8mb4",
    "VARCHAR(1000) COMPRESSED": "uncompressed",
    "INT AS (id + 1) VIRTUAL": "STORED",
}


@pytest.fixture
def settings(mariadb_server: Server) -> Iterator[Settings]:
    with database(mariadb_server) as found:
        yield found


@pytest.fixture
def users(settings: Settings) -> Iterator[Users]:
    found = Users(settings)
    found.run("SET time_zone = '+00:00'", "SET sql_mode = ''")
    yield found
    found.close()


def test_all_types_at_their_edges_are_held_exactly(settings: Settings, users: Users) -> None:
    """Inserted, updated and deleted, each value is the one that was written, from the log and in an
    answer.
    """
    source = MariaDBSource(settings)
    relations, expected = [], {}
    for number, (column, (name, values)) in enumerate(TYPES.items()):
        users.run(f"CREATE TABLE t{number} (id INT PRIMARY KEY, v {column})")
        relation = source.describe(f"t{number}")
        assert str(relation.schema.column("v").type) == name, column
        relations.append(relation)
        held = [value for _, value in values] + [None]
        expected[relation.name] = {(i,): {"id": i, "v": value} for i, value in enumerate(held)}
    copy = Copy(relations)
    copy.position = source.prepare(relations)
    for number, (_, values) in enumerate(TYPES.values()):
        for i, literal in enumerate([sql for sql, _ in values] + ["NULL"]):
            users.run(f"INSERT INTO t{number} VALUES ({i}, {literal})")
    follow_until(source, copy, source.position())
    assert copy.stopped == []
    assert copy.rows == expected
    assert {r.name: all_rows(source, r) for r in relations} == expected
    for number, (_, values) in enumerate(TYPES.values()):
        users.transaction(
            f"UPDATE t{number} SET v = NULL", f"UPDATE t{number} SET v = {values[0][0]}"
        )
        users.run(f"DELETE FROM t{number} WHERE id > 0")
    follow_until(source, copy, source.position())
    assert copy.rows == {name: {(0,): rows[0,]} for name, rows in expected.items()}


@pytest.mark.parametrize(
    "column",
    [
        c
        for c in TYPES
        if not c.endswith("TEXT") and c not in ("JSON", "LONGBLOB", "TINYBLOB", "FLOAT")
    ],
)
def test_keys_of_all_types_find_their_rows(settings: Settings, users: Users, column: str) -> None:
    source = MariaDBSource(settings)
    users.run(f"CREATE TABLE t (k {column.removesuffix(' NULL')} NOT NULL, n INT, PRIMARY KEY (k))")
    values = TYPES[column][1]
    for i, (literal, _) in enumerate(values):
        users.run(f"INSERT INTO t VALUES ({literal}, {i})")
    relation = source.describe("t")
    keys = pa.table({"k": pa.array([v for _, v in values], relation.schema.column("k").type.arrow)})
    answer = source.ask([Question(relation, ("k", "n"), keys)])
    found = rows_of(relation, answer.tables[0])
    assert found == {(value,): {"k": value, "n": i} for i, (_, value) in enumerate(values)}


@pytest.mark.parametrize("column", REFUSED)
def test_types_that_cannot_be_held_are_refused(
    settings: Settings, users: Users, column: str
) -> None:
    users.run(f"CREATE TABLE t (id INT PRIMARY KEY, v {column})")
    with pytest.raises(SourceError, match=REFUSED[column]):
        MariaDBSource(settings).describe("t")


@pytest.mark.parametrize(
    ("column", "literal"),
    [
        ("DATE", "'0000-00-00'"),
        ("DATE", "'2020-00-10'"),
        ("DATE", "'2020-02-31'"),
        ("DATETIME", "'0000-00-00 00:00:00'"),
        ("DATETIME(3)", "'2020-02-31 01:02:03'"),
        ("TIMESTAMP NULL", "'0000-00-00 00:00:00'"),
    ],
)
def test_dates_that_are_none_stop_the_relation(
    settings: Settings, users: Users, column: str, literal: str
) -> None:
    """They are no NULL, and the other relations of their transaction go on."""
    source = MariaDBSource(settings)
    users.run(f"CREATE TABLE t (id INT PRIMARY KEY, v {column})")
    users.run("CREATE TABLE other (id INT PRIMARY KEY)", "SET sql_mode = 'ALLOW_INVALID_DATES'")
    relations = [source.describe("t"), source.describe("other")]
    copy = Copy(relations)
    copy.position = source.prepare(relations)
    users.run("INSERT INTO t VALUES (1, NULL)")
    users.transaction("INSERT INTO other VALUES (1)", f"INSERT INTO t VALUES (2, {literal})")
    users.run("INSERT INTO t VALUES (3, NULL)")
    follow_until(source, copy, source.position())
    (stopped,) = copy.stopped
    assert stopped.relation == "t"
    assert copy.rows == {"t": {(1,): {"id": 1, "v": None}}, "other": {(1,): {"id": 1}}}
    with pytest.raises(SourceError, match="column v of t"):
        all_rows(source, relations[0])
