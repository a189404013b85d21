"""Net changes of rows as rows with weights, beside the plain form."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.changes.net import NetChanges
from belvedere.epochs.source import as_changes
from belvedere.readers.base_rows import codecs
from belvedere.types import BIGINT, DOUBLE, STRING, Column, Schema

SCHEMA = Schema((Column("g", STRING), Column("id", BIGINT, False), Column("v", DOUBLE)), ("id",))
Row = tuple[str | None, float | None]
rows = st.none() | st.tuples(st.none() | st.text(max_size=3), st.none() | st.integers(0, 3))
histories = st.dictionaries(st.integers(0, 40), st.tuples(rows, rows), max_size=12)


def encoded(rows: list[Row | None]) -> pa.BinaryArray:
    """The values of rows; NULL where there is none."""
    columns = [
        pa.array([None if row is None else row[0] for row in rows], pa.string()),
        pa.array([None if row is None else row[1] for row in rows], pa.float64()),
    ]
    values = codecs(SCHEMA)[1].encode(columns, rows=len(rows)).to_pylist()
    return pa.array(
        [None if row is None else value for row, value in zip(rows, values, strict=True)],
        pa.binary(),
    )


@given(histories, st.none() | st.frozensets(st.integers(0, 2)))
@settings(deadline=None)
def test_each_row_is_there_as_it_was_and_as_it_is(
    history: dict[int, tuple[Any, Any]], used: frozenset[int] | None
) -> None:
    ids = sorted(history)
    keys = codecs(SCHEMA)[0].encode([pa.array(ids, pa.int64())], rows=len(ids))
    before, after = (encoded([history[i][side] for i in ids]) for side in (0, 1))
    found = as_changes(SCHEMA, NetChanges(keys, before, after), used)
    expected = [
        (row[0], i, row[1], weight, key)
        for i, key in zip(ids, keys.to_pylist(), strict=True)
        for row, weight in zip(history[i], (-1, 1), strict=True)
        if row is not None and history[i][0] != history[i][1]
    ]
    shown = [0, 1, 2] if used is None else sorted(used)
    assert list(zip(*(found.column(f"c{i}").to_pylist() for i in shown), strict=True)) == (
        [tuple(row[i] for i in shown) for row in expected] if shown else []
    )
    assert [found.column(f"c{i}").null_count for i in {0, 1, 2} - {*shown}] == [
        len(expected) for _ in {0, 1, 2} - {*shown}
    ]
    rest = [found.column(name).to_pylist() for name in found.column_names[3:]]
    assert list(zip(*rest, strict=True)) == [row[3:] for row in expected]
