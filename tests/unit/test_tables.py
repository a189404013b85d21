"""Writes of base tables: what one call refuses every call refuses, nothing is rounded or cut, and a
refused call writes nothing.
"""

from __future__ import annotations

from collections import UserString
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import belvedere
from belvedere.errors import BelvedereError, SchemaError
from belvedere.types import Vector

TYPES = (
    "BOOLEAN",
    "INT",
    "BIGINT",
    "DOUBLE",
    "DECIMAL(10,2)",
    "DECIMAL(30,0)",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
)


class Nanoseconds(datetime):
    """What pandas makes of a time with nanoseconds."""

    nanosecond = 7


VALUES: tuple[Any, ...] = (
    *(
        True,
        False,
        0,
        1,
        -1,
        2**31,
        -(2**31),
        2**53 + 1,
        2**53 + 2,
        2**63,
        2**63 - 1,
        10**29,
        10**400,
    ),
    *(0.0, -0.0, 1.5, 1e300, float("inf"), float("-inf"), float("nan")),
    *(Decimal("1.25"), Decimal("1.255"), Decimal("NaN"), Decimal(10) ** 9, Fraction(1, 2), 1j),
    *(
        "",
        "a",
        "\0",
        "é" * 10,
        "\ud800",
        UserString("u"),
        b"",
        b"\x00\xff",
        bytearray(b"ab"),
        memoryview(b"m"),
    ),
    *(
        date(1, 1, 1),
        date(2026, 2, 28),
        date(9999, 12, 31),
        datetime(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5, 6),
    ),
    *(
        datetime(2026, 1, 2, tzinfo=UTC),
        datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=5))),
        Nanoseconds(2026, 1, 2),
        timedelta(1),
    ),
    *(
        np.int64(5),
        np.int32(-5),
        np.uint64(2**63),
        np.float64(0.5),
        np.float32(0.5),
        np.bool_(True),
        np.str_("n"),
    ),
    *([], {}, (), object()),
)


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:", slots=2) as opened:
        yield opened


def outcome(write: Any, read: Any) -> Any:
    try:
        write()
    except SchemaError:
        return "refused"
    return repr(read())


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "value", VALUES, ids=lambda value: f"{type(value).__name__} {str(value)[:12]!r}"
)
def test_one_row_and_many_rows_take_the_same_values(
    db: belvedere.Database, kind: str, value: Any
) -> None:
    db.sql(f"CREATE TABLE t (id INT, x {kind}, PRIMARY KEY (id))")
    db.sql(f"CREATE TABLE k (x {kind}, n INT, PRIMARY KEY (x))")
    t, k = db.table("t"), db.table("k")
    outcomes = {
        "put": outcome(lambda: t.put({"id": 1, "x": value}), lambda: t.get(1)),
        "put_many": outcome(lambda: t.put_many([{"id": 1, "x": value}]), lambda: t.get(1)),
        "write_many": outcome(
            lambda: t.write_many([{"id": 1, "x": value}], [False]), lambda: t.get(1)
        ),
    }
    assert len(set(outcomes.values())) == 1, outcomes
    as_key = {
        "put": outcome(lambda: k.put({"x": value, "n": 1}), lambda: list(k.scan())),
        "put_many": outcome(lambda: k.put_many([{"x": value, "n": 1}]), lambda: list(k.scan())),
    }
    assert len(set(as_key.values())) == 1, as_key
    if as_key["put"] == "refused":
        with pytest.raises(SchemaError):
            k.get(value)
    else:
        assert k.get(value) is not None
        k.delete(value)
        assert list(k.scan()) == []


def test_what_is_taken_comes_back_equal(db: belvedere.Database) -> None:
    for kind in TYPES:
        db.sql(f"CREATE TABLE t (id INT, x {kind}, PRIMARY KEY (id))")
        for value in VALUES:
            if outcome(lambda: db.table("t").put({"id": 1, "x": value}), lambda: 1) != "refused":  # noqa: B023  # called at once
                found = db.table("t").get(1)
                assert found is not None
                same = value.item() if isinstance(value, np.generic) else value
                same = (
                    same.replace(tzinfo=UTC)
                    if isinstance(same, datetime) and same.tzinfo is None
                    else same
                )
                assert found["x"] == same or value != value, (kind, value, found)
        db.sql("DROP TABLE t")


@pytest.mark.parametrize(
    ("rows", "deletes", "said"),
    [
        ([{"id": 5}], [False], "row 0: column c must not be NULL"),
        ([{"id": 5}, {"id": 6}], [True, False], "row 1: column c must not be NULL"),
        ([{"c": 5}], [True], "row 0: the key id must not be NULL"),
        ([{"id": 1, "c": 9}], [None], "none of them NULL"),
        ([{"id": 1, "c": 9}], [True, False], "2 values for 1 rows"),
        ([{"id": 1, "c": 9}], ["yes"], "give booleans"),
        ([{"id": 1, "c": 9}], 7, "give booleans"),
        ([{"id": 1, "c": 9}], pa.array([1]), "give booleans"),
    ],
)
def test_a_wrong_mask_of_deletes_and_missing_values_are_refused(
    db: belvedere.Database, rows: Any, deletes: Any, said: str
) -> None:
    db.sql("CREATE TABLE n (id INT PRIMARY KEY, c INT NOT NULL)")
    db.table("n").put({"id": 1, "c": 1})
    with pytest.raises(SchemaError, match=said):
        db.table("n").write_many(rows, deletes)
    assert list(db.table("n").scan()) == [{"id": 1, "c": 1}]
    db.table("n").write_many([{"id": 1}, {"id": 2, "c": 3}], [True, False])
    assert list(db.table("n").scan()) == [{"id": 2, "c": 3}]


def _text(raw: bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 1, pa.array([raw]).buffers())


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (pa.table({"id": [2], "s": _text(b"\xff\xfe")}), "column s is string: .*UTF8"),
        (
            pa.table(
                {"id": [2], "s": pa.array([b"\xff"]).view(pa.string()).cast(pa.large_string())}
            ),
            "column s is string",
        ),
        (pa.table([[1], ["a"], [2]], names=["id", "s", "ID"]), "column 'ID' is given twice"),
        (pa.table([[1], ["a"], ["b"]], names=["id", "s", "s"]), "column 's' is given twice"),
        ([{"id": 1, "s": "a", "S": "b"}], "row 0: column 'S' is given twice"),
        ([{"id": 1}, {"id": 2, 3: 4}], "row 1: unknown column 3"),
        ({"id": 1}, "a list of dicts"),
        (None, "a list of dicts"),
        (7, "a list of dicts"),
        ("id", "a list of dicts"),
        ([None], "row 0 is a NoneType"),
        (pa.array([1, 2]), "does not become an Arrow table"),
    ],
)
def test_rows_that_are_none_are_refused(db: belvedere.Database, rows: Any, said: str) -> None:
    db.sql("CREATE TABLE u (id INT PRIMARY KEY, s STRING)")
    with pytest.raises(SchemaError, match=said):
        db.table("u").put_many(rows)
    assert list(db.table("u").scan()) == []


@pytest.mark.parametrize("row", [None, 7, [1], "id"])
def test_one_row_is_a_dict(db: belvedere.Database, row: Any) -> None:
    db.sql("CREATE TABLE u (id INT PRIMARY KEY, s STRING)")
    with pytest.raises(SchemaError, match="a row is a dict"):
        db.table("u").put(row)
    with pytest.raises(SchemaError, match="given twice"):
        db.table("u").put({"id": 1, "ID": 2})


def test_encoded_columns_are_taken(db: belvedere.Database) -> None:
    db.sql("CREATE TABLE u (id INT PRIMARY KEY, s STRING)")
    for number, kind in enumerate((pa.string(), pa.large_string(), pa.string_view())):
        codes = pa.DictionaryArray.from_arrays(
            pa.array([0, 0, None], pa.uint32()), pa.array(["x"]).cast(kind)
        )
        db.table("u").put_many(
            pa.table({"id": [3 * number, 3 * number + 1, 3 * number + 2], "s": codes})
        )
    assert [row["s"] for row in db.table("u").scan()] == ["x", "x", None] * 3


def test_keys_that_sql_calls_equal_are_one_key(db: belvedere.Database) -> None:
    db.sql("CREATE TABLE z (d DOUBLE PRIMARY KEY, v INT)")
    z = db.table("z")
    z.put_many(
        [
            {"d": 0.0, "v": 1},
            {"d": -0.0, "v": 2},
            {"d": float("nan"), "v": 3},
            {"d": -float("nan"), "v": 4},
        ]
    )
    assert [row["v"] for row in z.scan()] == [2, 4]
    assert (z.get(-0.0), z.get(0.0)) == ({"d": 0.0, "v": 2},) * 2
    z.delete(-0.0)
    assert len(list(z.scan())) == 1


@pytest.mark.parametrize("limit", ["2", -1, 1.5, True])
def test_a_limit_is_a_number_of_rows(db: belvedere.Database, limit: Any) -> None:
    db.sql("CREATE TABLE u (id INT PRIMARY KEY, s STRING)")
    with pytest.raises(BelvedereError, match="limit is a number of rows"):
        list(db.table("u").scan(limit=limit))


LATE = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))  # a time of the year 10000 in UTC
EARLY = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("TIMESTAMP", pa.array([0, 2**62], pa.timestamp("us"))),
        ("TIMESTAMP", pa.array([0, -(2**62)], pa.timestamp("us"))),
        ("TIMESTAMP", pa.array([0, 2**50], pa.timestamp("s"))),
        ("DATE", pa.array([0, 2**30], pa.date32())),
        ("DATE", pa.array([0, -(2**30)], pa.date32())),
    ],
)
def test_times_that_nobody_could_read_again_are_refused_in_arrow(
    db: belvedere.Database, kind: str, column: pa.Array
) -> None:
    db.sql(f"CREATE TABLE t (id INT, x {kind}, PRIMARY KEY (id))")
    with pytest.raises(SchemaError, match=r"column x is "):
        db.table("t").put_many(pa.table({"id": [1, 2], "x": column}))
    assert db.table("t").to_arrow().num_rows == 0


@pytest.mark.parametrize("value", [LATE, EARLY])
def test_times_that_nobody_could_read_again_are_refused_as_values(
    db: belvedere.Database, value: datetime
) -> None:
    db.sql(
        "CREATE TABLE t (id INT, x TIMESTAMP, PRIMARY KEY (id)); CREATE TABLE k (x TIMESTAMP,"
        " PRIMARY KEY (x))"
    )
    writes: list[Callable[[], object]] = [
        lambda: db.table("t").put({"id": 1, "x": value}),
        lambda: db.table("t").put_many([{"id": 1, "x": value}]),
        lambda: db.table("k").put({"x": value}),
        lambda: db.table("k").delete(value),
    ]
    for write in writes:
        with pytest.raises(SchemaError):
            write()
    assert db.table("t").put({"id": 1, "x": datetime.max}) == Vector({"log": 1})
    assert list(db.table("t").scan()) == [{"id": 1, "x": datetime.max.replace(tzinfo=UTC)}]


@pytest.mark.parametrize("keys", ["abc", b"abc", {"a": 1}, 5, None])
def test_one_key_is_no_list_of_keys(db: belvedere.Database, keys: Any) -> None:
    db.sql("CREATE TABLE t (id STRING, PRIMARY KEY (id))")
    with pytest.raises(SchemaError, match=r"expected keys as a list"):
        db.table("t").delete_many(keys)
    assert db.status().written == 0


def test_the_row_labels_of_pandas_are_no_column(db: belvedere.Database) -> None:
    db.sql("CREATE TABLE t (id INT, PRIMARY KEY (id))")
    labelled = pa.table({"id": pa.array([1, 2], pa.int64()), "__index_level_0__": [7, 9]})
    with pytest.raises(SchemaError, match="unknown column '__index_level_0__'"):
        db.table("t").put_many(labelled)
    db.table("t").put_many(labelled.replace_schema_metadata({"pandas": "{}"}))
    assert db.table("t").to_arrow().to_pydict() == {"id": [1, 2]}
