"""The pre-aggregation against sorting all values of a group again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from belvedere.encoding import KeyCodec
from belvedere.operators.aggregate.ordered import Ordered, Touched
from belvedere.operators.base import ID, WEIGHT
from belvedere.operators.grouping import group
from belvedere.testing import OneSlot
from belvedere.types import INT, STRING

_TABLE = 7
_CODEC = KeyCodec((INT,))
Bag = dict[str, Counter[int]]
Change = tuple[str, int | None, bool]

Extremes = dict[str, tuple[bytes | None, bytes | None]]

_CHANGE = st.tuples(st.sampled_from("gh"), st.one_of(st.none(), st.integers(0, 5)), st.booleans())
epochs = st.lists(st.lists(_CHANGE, max_size=12), max_size=6)


def weighted(bag: Bag, found: list[Change]) -> list[tuple[str, int | None, int]]:
    """Insertions, and deletions of values that are there; `bag` follows."""
    made = []
    for name, value, insert in found:
        if value is None or insert or bag[name][value]:
            made.append((name, value, 1 if insert or value is None else -1))
            if value is not None:
                bag[name][value] += made[-1][2]
    return made


def apply(
    slot: OneSlot, rows: list[tuple[str, int | None, int]], extremes: Extremes
) -> dict[str, tuple[int | None, ...]]:
    """One epoch; returns growth, least and greatest by group, and updates the extremes that an
    aggregate would keep.
    """
    operator = Ordered(_TABLE, (INT,))
    keys, codes = group(pa.array([r[0].encode() for r in rows], pa.binary()))
    changes = pa.table(
        {
            "c0": pa.array([r[1] for r in rows], pa.int32()),
            WEIGHT: pa.array([r[2] for r in rows], pa.int64()),
        }
    )
    names = [k.decode() for k in keys.to_pylist()]
    before = [
        pa.array([extremes.get(n, (None, None))[i] for n in names], pa.binary()) for i in (0, 1)
    ]
    shard = slot.shard()
    found: Touched = operator.apply(
        shard, keys, [operator.partial(changes, [0], keys, codes)], *before
    )
    shard.commit()
    ends = list(zip(found.least.to_pylist(), found.greatest.to_pylist(), strict=True))
    extremes.update(zip(names, ends, strict=True))
    values = [
        tuple(None if end is None else _CODEC.decode_one(end)[0] for end in pair) for pair in ends
    ]
    return {
        name: (int(growth), *pair)
        for name, growth, pair in zip(names, found.distinct, values, strict=True)
    }


@given(epochs)
def test_extremes_and_distinct_counts_are_those_of_the_sorted_values(
    found: list[list[Change]],
) -> None:
    slot, bag = OneSlot(), {"g": Counter[int](), "h": Counter[int]()}
    extremes: Extremes = {}
    for batch in found:
        distinct = {name: len(+values) for name, values in bag.items()}
        rows = weighted(bag, batch)
        if not rows:
            continue
        for name, (growth, least, greatest) in apply(slot, rows, extremes).items():
            present = sorted((+bag[name]).keys())
            assert growth == len(present) - distinct[name]
            assert (least, greatest) == ((present[0], present[-1]) if present else (None, None))
        expected = {
            name.encode() + _CODEC.encode_one((v,)) for name, values in bag.items() for v in +values
        }
        assert set(slot.records(_TABLE)) == expected


def test_deleting_the_minimum_seeks_to_the_next_record_only() -> None:
    slot = OneSlot()
    extremes: Extremes = {}
    apply(slot, [("g", v, 1) for v in range(6)], extremes)
    seen: list[bytes] = []
    shard = slot.shard()
    plain = shard.scan

    def scan(*args: object, **kwargs: object):  # type: ignore[no-untyped-def]  # passes on what it is given
        for record in plain(*args, **kwargs):  # type: ignore[arg-type]  # the same
            seen.append(record[0])
            yield record

    shard.scan = scan  # type: ignore[method-assign]  # to see what is read
    operator = Ordered(_TABLE, (INT,))
    keys, codes = group(pa.array([b"g"], pa.binary()))
    changes = pa.table({"c0": pa.array([0], pa.int32()), WEIGHT: pa.array([-1], pa.int64())})
    ends = [pa.array([e], pa.binary()) for e in extremes["g"]]
    found = operator.apply(shard, keys, [operator.partial(changes, [0], keys, codes)], *ends)
    assert _CODEC.decode_one(found.least[0].as_py()) == (1,)
    assert len(seen) == 2  # the record that goes and the one that stays


def test_rows_with_a_null_do_not_count() -> None:
    slot = OneSlot()
    assert apply(slot, [("g", None, 1), ("g", 3, 1)], {}) == {"g": (1, 3, 3)}


_WRITE = st.tuples(
    st.sampled_from("abcdef"),
    st.one_of(
        st.none(),
        st.tuples(st.sampled_from("gh"), st.one_of(st.none(), st.text("x\0y", max_size=3))),
    ),
)


@given(st.lists(st.lists(_WRITE, max_size=8), max_size=6), st.integers(1, 3))
def test_extremes_by_row_are_those_of_the_rows_that_are_there(
    batches: list[list[tuple[str, Any]]], producers: int
) -> None:
    """Rows move between groups and values; parts come from several producers, which split the rows
    among them.
    """
    codec, operator = KeyCodec((STRING,)), Ordered(_TABLE, (STRING,), by_row=True)
    slot, rows = OneSlot(), dict[str, tuple[str, str | None]]()
    ends: dict[str, tuple[bytes | None, bytes | None]] = {}
    for batch in batches:
        before, rows = rows, {**rows, **dict(batch)}
        rows = {row: content for row, content in rows.items() if content is not None}
        changes = [(row, *old, -1) for row, old in sorted(before.items()) if rows.get(row) != old]
        changes += [(row, *new, 1) for row, new in sorted(rows.items()) if before.get(row) != new]
        if not changes:
            continue
        keys, _ = group(pa.array([c[1].encode() for c in changes], pa.binary()))
        names = [k.decode() for k in keys.to_pylist()]
        parts = []
        for producer in range(producers):
            mine = [c for c in changes if ord(c[0]) % producers == producer]
            data = {
                "c0": pa.array([c[2] for c in mine], pa.string()),
                WEIGHT: pa.array([c[3] for c in mine], pa.int64()),
            }
            table = pa.table({**data, ID: pa.array([c[0].encode() for c in mine], pa.binary())})
            parts.append(
                operator.partial(
                    table, [0], keys, np.array([names.index(c[1]) for c in mine], np.int64)
                )
            )
        shard = slot.shard()
        found = operator.apply(
            shard,
            keys,
            parts,
            *(pa.array([ends.get(n, (None, None))[i] for n in names], pa.binary()) for i in (0, 1)),
        )
        shard.commit()
        ends.update(
            zip(
                names,
                zip(found.least.to_pylist(), found.greatest.to_pylist(), strict=True),
                strict=True,
            )
        )
        for name in names:
            values = sorted(
                codec.encode_one([v]) for g, v in rows.values() if g == name and v is not None
            )
            assert ends[name] == ((values[0], values[-1]) if values else (None, None))
