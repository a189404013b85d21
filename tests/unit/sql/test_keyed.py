"""Statements read the keys that their conditions leave, and their answers are those of reading
everything.
"""

from __future__ import annotations

import math
from collections import Counter as Bag
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import belvedere
from belvedere.database import Database
from belvedere.encoding import KeyCodec
from belvedere.encoding.ranges import EVERYTHING, Ranges
from belvedere.errors import SqlError
from belvedere.expressions import parse
from belvedere.sql.query.keyed import Keyed, ranges_where
from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Column,
    Schema,
    SqlType,
    decimal,
)
from tests.unit.counting import counted

DAY, NOON = date(2024, 2, 29), datetime(2024, 2, 29, 12, tzinfo=UTC)
VALUES: dict[SqlType, list[Any]] = {
    BOOLEAN: [False, True],
    INT: [-(2**31), -1, 0, 1, 2, 7, 2**31 - 1],
    BIGINT: [-(2**63), -1, 0, 1, 7, 2**53, 2**53 + 1, 2**63 - 1],
    DOUBLE: [-math.inf, -1.5, -0.0, 0.0, 0.1, 1.5, 7.0, 2.0**53, math.inf, math.nan],
    STRING: ["", "\x00", "7", "07", "a", "a\x00", "ab", "b", "2024-02-29", "é"],
    BINARY: [b"", b"\x00", b"\x00\xff", b"a", b"ab", b"\xff"],
    DATE: [date(1, 1, 1), date(1970, 1, 1), DAY, date(9999, 12, 31)],
    TIMESTAMP: [datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=UTC), NOON],
    decimal(5, 2): [Decimal("-999.99"), Decimal("0.00"), Decimal("0.10"), Decimal("7.00")],
    decimal(38, 10): [Decimal("-1E+27"), Decimal("0.1"), Decimal("7"), Decimal("1.0000000001")],
}
KEYS: list[tuple[SqlType, ...]] = [
    *((kind,) for kind in VALUES),
    (INT, STRING),
    (STRING, BIGINT),
    (DOUBLE, INT),
    (BOOLEAN, DATE, decimal(5, 2)),
    (TIMESTAMP, BINARY),
]
CONSTANTS = [
    *("NULL", "CAST(NULL AS INT)", "0", "1", "-1", "7", "2", "3 + 4", "CAST('7' AS INT)"),
    *("2147483648", "-2147483649", "9007199254740993", "99999999999999999999"),
    *("1.5", "0.1", "0.10", "7.00", "-999.99", "1000.00", "123456789012345678901234567.5"),
    *("CAST(7 AS DECIMAL(38, 0))", "CAST('0.1' AS DECIMAL(38, 20))", "1e300", "9007199254740992D"),
    *("-0.0D", "0.1D", "1.5D", "7D", "CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)"),
    *("'7'", "''", "'a'", "'ab'", "'2024-02-29'", "'1.5'", "'true'", "TRUE", "FALSE"),
    *("X''", "X'00'", "X'6162'", "DATE '2024-02-29'", "DATE '0001-01-01'"),
    *("TIMESTAMP '2024-02-29'", "TIMESTAMP '2024-02-29 12:00:00'", "1 / 0"),
]
SIGNS = ["=", "<", "<=", ">", ">=", "<=>", "<>"]
FORMS = [
    *(f"k0 {sign} {{0}}" for sign in SIGNS),
    *("k0 = {0} OR k0 > {0}", "k0 < {0} OR k0 IS NULL", "k0 = {0} OR {0} = k0"),
    *("{0} < k0", "{0} >= k0", "k0 IN (NULL, {0})", "k0 IN ({0}, {0})", "k0 BETWEEN {0} AND {0}"),
]
# terms that raise for some rows, and terms that say nothing of a key
OTHERS = ["10 / n > 1", "n > 1", "CAST(s AS INT) = 1", "s IS NOT NULL", "(n = 1 OR n = 2)"]


def literal(value: Any, kind: SqlType) -> str:
    """A value of the key's own type, as a statement may write it."""
    if kind == STRING:
        escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if kind == BINARY:
        return f"X'{value.hex()}'"
    return f"CAST('{value}' AS {kind})"


def rows_of(kinds: tuple[SqlType, ...], nulls: bool) -> list[dict[str, Any]]:
    """Rows with many keys that agree in their first columns."""
    found: list[tuple[Any, ...]] = [()]
    for kind in kinds:
        found = [(*row, v) for row in found for v in VALUES[kind] + ([None] if nulls else [])]
    names = [f"k{i}" for i in range(len(kinds))]
    return [
        {**dict(zip(names, key, strict=True)), "n": i % 4, "s": str(i) if i % 3 else "x"}
        for i, key in enumerate(found)
    ]


def create(db: Database, kinds: tuple[SqlType, ...]) -> None:
    """A table `t` by this key, and views over `u` in which the key has NULLs."""
    names = ", ".join(f"k{i}" for i in range(len(kinds)))
    columns = ", ".join(f"k{i} {kind}" for i, kind in enumerate(kinds))
    db.sql(f"CREATE TABLE t ({columns}, n INT, s STRING, PRIMARY KEY ({names}))")
    db.sql(f"CREATE TABLE u (id INT, {columns}, n INT, s STRING, PRIMARY KEY (id))")
    index = f"SELECT {names}, id, n, s FROM u"
    db.sql(f"CREATE MATERIALIZED VIEW by_key WITH (key = '{names}') AS {index}")
    groups = f"SELECT {names}, CAST(max(n) AS INT) AS n, max(s) AS s FROM u GROUP BY {names}"
    db.sql(f"CREATE MATERIALIZED VIEW groups AS {groups}")
    db.sql(f"CREATE MATERIALIZED VIEW bag AS SELECT {names}, n, s FROM u")
    db.table("t").put_many(rows_of(kinds, nulls=False))
    rows = rows_of(kinds, nulls=True)
    db.table("u").put_many([{"id": i, **row} for i, row in enumerate(rows + rows)])
    db.catch_up()


@pytest.fixture(scope="module", params=KEYS, ids=lambda kinds: "-".join(map(str, kinds)))
def keyed(request: pytest.FixtureRequest) -> Iterator[tuple[Database, tuple[SqlType, ...]]]:
    with belvedere.open("memory:", slots=3) as db:
        create(db, request.param)
        yield db, request.param


@st.composite
def conditions(draw: st.DrawFn, kinds: tuple[SqlType, ...]) -> str:
    """Terms over the key's columns and others, joined by AND."""
    own = [literal(v, kind) for kind in kinds for v in VALUES[kind]]
    constant = st.one_of(st.sampled_from(CONSTANTS), st.sampled_from(own))

    def term() -> str:
        column = draw(st.sampled_from([f"k{i}" for i in range(len(kinds))]))
        one, other, third = draw(constant), draw(constant), draw(constant)
        return draw(
            st.sampled_from(
                [
                    f"{column} {draw(st.sampled_from(SIGNS))} {one}",
                    f"{one} {draw(st.sampled_from(SIGNS))} ({column})",
                    f"{column} BETWEEN {one} AND {other}",
                    f"{column} IN ({one}, {other}, {third})",
                    f"{column} IS NULL",
                    f"({column} > {one} AND {column} < {other})",
                    f"NOT {column} = {one}",
                    f"({column} = {one} OR {column} >= {other} OR {third} = {column})",
                    draw(st.sampled_from(OTHERS)),
                ]
            )
        )

    def terms() -> str:
        return " AND ".join(term() for _ in range(draw(st.integers(1, 3))))

    return f"({terms()}) OR ({terms()})" if draw(st.integers(0, 3)) == 0 else terms()


def outcome(db: Database, statement: str) -> Any:
    """The rows as a bag, or that it fails."""
    try:
        rows = db.sql(statement).to_pylist()
    except SqlError:
        return "fails"
    return Bag(repr(sorted(row.items())) for row in rows)


def unnarrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belvedere.sql.query.direct", lambda *_: None)
    monkeypatch.setattr("belvedere.sql.query.ranges_in", lambda *_: {})
    monkeypatch.setattr("belvedere.statements.update.ranges_where", lambda *_: EVERYTHING)


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_every_comparison_of_every_type_with_every_constant(kind: SqlType) -> None:
    """The rules of comparisons are few enough to try all of them: a row for which a condition is
    true is in the ranges.
    """
    schema, bounded = Schema((Column("k0", kind),), ("k0",)), 0
    with belvedere.open("memory:") as db:
        db.sql(f"CREATE TABLE u (id INT, k0 {kind}, PRIMARY KEY (id))")
        given = [*VALUES[kind], None]
        db.table("u").put_many([{"id": i, "k0": value} for i, value in enumerate(given)])
        for constant in CONSTANTS:
            terms = [form.format(constant) for form in FORMS]
            tests = ", ".join(f"{term} AS x{i}" for i, term in enumerate(terms))
            try:
                rows = db.sql(f"SELECT k0, {tests} FROM u").to_pylist()
            except SqlError:
                continue  # it does not compare, or raises
            for i, term in enumerate(terms):
                true = [row["k0"] for row in rows if row[f"x{i}"]]
                bounded += all(holds(term, schema, true, of_view) for of_view in (False, True))
        assert bounded > 10


def holds(term: str, schema: Schema, true: list[Any], of_view: bool) -> bool:
    """Whether the term gives ranges; they have all values for which it is true."""
    codec = KeyCodec((schema.columns[0].type,), normalize=not of_view)
    ranges = ranges_where(parse(term), "u", Keyed(schema, not of_view, has_nulls=True))
    assert all(is_in(codec.encode_one([value]), ranges) for value in true), term
    return ranges != EVERYTHING


def test_a_list_whose_common_type_rounds_the_column_bounds_nothing() -> None:
    """With so many digits before the point, seven are left behind it."""
    schema = Schema((Column("k0", decimal(38, 10)),), ("k0",))
    term = "k0 IN (1234567890123456789012345678901.5, 1)"
    with belvedere.open("memory:") as db:
        db.sql("CREATE TABLE t (k0 DECIMAL(38,10), PRIMARY KEY (k0))")
        db.table("t").put({"k0": Decimal("1.0000000001")})
        assert len(db.sql(f"SELECT * FROM t WHERE {term}").to_pylist()) == 1
    assert not holds(term, schema, [Decimal("1.0000000001")], of_view=False)


def is_in(key: bytes, ranges: Ranges) -> bool:
    return any(r.low <= key and (r.high is None or key < r.high) for r in ranges)


MANY = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@MANY
@given(data=st.data())
def test_a_select_by_key_has_the_rows_of_reading_everything(
    keyed: tuple[Database, tuple[SqlType, ...]], data: st.DataObject
) -> None:
    db, kinds = keyed
    relation = data.draw(st.sampled_from(["t", "by_key", "groups", "bag"]))
    items = data.draw(st.sampled_from(["*", "*, n + 1 AS more"]))  # to read, or also to compute
    statement = f"SELECT {items} FROM {relation} WHERE {data.draw(conditions(kinds))}"
    found = outcome(db, statement)
    with pytest.MonkeyPatch.context() as patch:
        unnarrowed(patch)
        assert found == outcome(db, statement)


@MANY
@given(data=st.data())
def test_an_update_and_a_delete_by_key_change_the_rows_of_reading_everything(
    keyed: tuple[Database, tuple[SqlType, ...]], data: st.DataObject
) -> None:
    db, kinds = keyed
    where = data.draw(conditions(kinds))
    statement = data.draw(st.sampled_from(["UPDATE t SET n = 9", "DELETE FROM t"]))
    found = changed(db, f"{statement} WHERE {where}", kinds)
    with pytest.MonkeyPatch.context() as patch:
        unnarrowed(patch)
        assert found == changed(db, f"{statement} WHERE {where}", kinds)


def changed(db: Database, statement: str, kinds: tuple[SqlType, ...]) -> Any:
    """What a statement answers, and the rows after it; the rows are put back."""
    with counted(db) as counter:
        said = outcome(db, statement)
    after = Bag(map(repr, db.table("t").scan()))
    before = rows_of(kinds, nulls=False)
    db.table("t").put_many(before)
    if said != "fails":
        gone_or_new = sum((Bag(map(repr, db.table("t").scan())) - after).values())
        assert counter.written >= gone_or_new
        assert f"{counter.written} row(s)" in str(said)
    return said, after


@MANY
@given(data=st.data())
def test_what_is_read_is_what_the_key_leaves(
    keyed: tuple[Database, tuple[SqlType, ...]], data: st.DataObject
) -> None:
    """Conditions on the first columns of the key, in its own types: not one row is read in vain."""
    db, kinds = keyed
    width = data.draw(st.integers(1, len(kinds)))
    terms = [f"k{i} = {drawn(data, kinds[i])}" for i in range(width - 1)]
    last = f"k{width - 1}"
    one, other = drawn(data, kinds[width - 1]), drawn(data, kinds[width - 1])
    sign = data.draw(st.sampled_from(["=", "<", "<=", ">", ">="]))
    ends = [f"{last} {sign} {one}", f"{last} BETWEEN {one} AND {other}", f"{last} IN ({one})"]
    terms.append(data.draw(st.sampled_from(ends)))
    relation = data.draw(st.sampled_from(["t", "by_key", "groups"]))
    with counted(db) as counter:
        rows = db.sql(f"SELECT * FROM {relation} WHERE {' AND '.join(terms)}").to_pylist()
    assert counter.rows == len(rows)


def drawn(data: st.DataObject, kind: SqlType) -> str:
    return literal(data.draw(st.sampled_from(VALUES[kind])), kind)
