"""Filters that Spark passes on narrow a read, and never lose a row or read one twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)
from pyspark.sql.types import NullType, StructField, StructType

import belvedere
from belvedere.data_source import BelvedereSource
from belvedere.epochs.local import LocalRunner

SCHEMA = StructType([StructField(name, NullType()) for name in "nsbx"])  # names are looked at
BIGS, TEXTS = (-(2**63), -2, -1, 0, 1, 2, 2**63 - 1), ("", "a", "ab", "b", "\x00", "ß", "a\x00b")
VALUES: dict[str, list[Any]] = {"n": [*BIGS], "s": [*TEXTS], "b": [False, True], "x": [1, 2]}
ORDERED: dict[Any, Callable[[Any, Any], bool]] = {
    GreaterThan: lambda a, b: a > b,
    GreaterThanOrEqual: lambda a, b: a >= b,
    LessThan: lambda a, b: a < b,
    LessThanOrEqual: lambda a, b: a <= b,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("pushdown") / "shop"
    with belvedere.open(folder, slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (n BIGINT, s STRING, b BOOLEAN, x INT, PRIMARY KEY (n, s, b))")
        db.sql("CREATE TABLE u (id INT PRIMARY KEY, n BIGINT, s STRING, b BOOLEAN)")
        db.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT n, s, b, count(*) AS x FROM u GROUP BY n, s, b"
        )
        keys = [(n, s, b) for n in BIGS for s in TEXTS for b in (False, True)]
        rows = [dict(zip("nsb", key, strict=True)) for key in keys]
        db.table("t").put_many([{**row, "x": i % 3} for i, row in enumerate(rows)])
        for name in "nsb":
            rows += [{**row, name: None} for row in rows[::7]]
        db.table("u").put_many([{"id": i, **row} for i, row in enumerate(rows)])
        db.catch_up()
        yield str(folder)


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    name = draw(st.sampled_from("nsbx"))
    one = st.sampled_from(VALUES[name])
    kind = draw(st.sampled_from([EqualTo, In, IsNull, Not, *ORDERED]))
    if kind is In:
        # Spark gives the same value only once, but does not say so
        return In((name,), tuple(draw(st.lists(one | st.none(), min_size=1, max_size=4))))
    if kind is IsNull:
        return IsNull((name,))
    if kind is Not:
        return Not(EqualTo((name,), draw(one)))
    made: Filter = kind((name,), draw(one))
    return made


def holds(each: Any, row: dict[str, Any]) -> bool:
    if isinstance(each, Not):
        child: Any = each.child
        return row[child.attribute[0]] is not None and not holds(child, row)
    value = row[each.attribute[0]]
    if isinstance(each, IsNull):
        return value is None
    if value is None:
        return False
    if isinstance(each, In):
        return value in each.value
    return bool(
        value == each.value if isinstance(each, EqualTo) else ORDERED[type(each)](value, each.value)
    )


def read(path: str, name: str, some: list[Filter]) -> Counter[tuple[Any, ...]]:
    options = {"db": path, "path": name, "pushdown": "true"}
    source = BelvedereSource(CaseInsensitiveDict(options))
    reader: Any = source.reader(SCHEMA)
    assert list(reader.pushFilters(some)) == some  # all of them are Spark's to apply
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return Counter(tuple(row.values()) for batch in batches for row in batch.to_pylist())


@settings(max_examples=60, deadline=None)
@given(st.sampled_from("tv"), st.lists(filters(), max_size=4))
def test_what_is_read_has_every_row_that_the_filters_leave_once(
    path: str, name: str, some: list[Filter]
) -> None:
    everything, found = read(path, name, []), read(path, name, some)
    assert found <= everything
    columns = ("n", "s", "b", "x")
    for row in everything - found:
        assert not all(holds(each, dict(zip(columns, row, strict=True))) for each in some)


def test_a_read_is_narrow(path: str) -> None:
    assert sum(read(path, "t", [EqualTo(("n",), 1)]).values()) == len(TEXTS) * 2
    assert sum(read(path, "t", [EqualTo(("n",), 1), In(("s",), ("a", "b"))]).values()) == 4
    assert sum(read(path, "t", [LessThan(("n",), -2)]).values()) == len(TEXTS) * 2
