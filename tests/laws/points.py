"""The law of keys: under a key, or the beginning of one, a reader finds the rows of which SQL says
that they have it, NaN and NULL included, and whichever zero is asked for.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

from belvedere.catalog.definitions import ViewDefinition
from belvedere.readers.cut import Cut
from belvedere.readers.points import point_read
from belvedere.readers.rows import ViewRows
from tests.laws.judges import same_rows

Row = tuple[Any, ...]
_NAN = "NaN"


def check_points(cut: Cut, view: ViewDefinition, rows: list[Row], dice: Random) -> int:
    """Asks for the key of one row; returns how often a zero of another sign was asked for."""
    if not rows or not view.schema.key:
        return 0
    at = [view.schema.names.index(name) for name in view.schema.key]
    row = dice.choice(rows)
    kept = tuple(row[i] for i in at)
    key = tuple(_other_zero(value) if dice.random() < 0.5 else value for value in kept)
    where = f"{view.select} with key {view.schema.key} = {key}, epoch {cut.epoch}"
    begin = dice.randint(1, len(key))
    alike = [each for each in rows if _equal([each[i] for i in at[:begin]], key[:begin])]
    found = cut.rows(view, key[:begin])
    there = list(zip(*(c.to_pylist() for c in found.columns), strict=True))
    assert same_rows(there, alike), f"{where}: {begin} columns find {there}, not {alike}"
    if not ViewRows.of(view).sink.counts_rows:
        record = point_read(cut.store.state, view)(key, cut.epoch)
        assert record is not None, f"{where}: nothing is there"
        assert same_rows([tuple(record.values())], [row]), f"{where}: {record}, not {row}"
    return sum(map(_differs, key, kept))


def _other_zero(value: Any) -> Any:
    return -value if isinstance(value, float) and value == 0 else value


def _differs(one: Any, other: Any) -> bool:
    both = isinstance(one, float) and isinstance(other, float)
    return both and math.copysign(1, one) != math.copysign(1, other)


def _equal(one: Any, other: Any) -> bool:
    return [*map(_plain, one)] == [*map(_plain, other)]


def _plain(value: Any) -> Any:
    return _NAN if isinstance(value, float) and math.isnan(value) else value
