"""Rows in error: which rows of the base table a view cannot evaluate, and which expression fails (rule R9)."""

from __future__ import annotations

from typing import Any

from belvedere.encoding import KeyCodec
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.errors import COUNT, COUNTER, ROW
from belvedere.operators.select import Select
from belvedere.readers.cut import Cut
from belvedere.views.definitions import ViewDefinition

LISTED = 100


def problems(cut: Cut, view: ViewDefinition) -> list[dict[str, Any]]:
    """At most `LISTED` rows in error: their key and the expression that raises."""
    found: list[dict[str, Any]] = []
    grouped = False
    for node in view.planned.nodes:
        operator = node.operator
        if isinstance(operator, Aggregate):
            found += _records(cut, view, operator.errors, grouped=True, operator=operator)
            grouped = True
        elif isinstance(operator, Select) and operator.errors:
            found += _records(cut, view, operator.errors, grouped, operator)
    return found[:LISTED]


def _records(cut: Cut, view: ViewDefinition, table: int, grouped: bool, operator: Select | Aggregate) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for slot in range(cut.store.state.slots):
        reader = cut.store.state.reader(slot, cut.epoch)
        for keys, values in reader.scan(table):
            for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
                if key != COUNTER and len(rows) < LISTED:
                    identity = _identity(cut, view, key[len(ROW) :], grouped)
                    rows.append({**identity, "expression": _text(operator, COUNT.unpack(value)[1])})
        reader.close()
    return rows


def _identity(cut: Cut, view: ViewDefinition, key: bytes, grouped: bool) -> dict[str, Any]:
    if grouped:
        aggregate = next(n.operator for n in view.planned.nodes if isinstance(n.operator, Aggregate))
        return {f"group {i + 1}": value for i, value in enumerate(KeyCodec(aggregate.groups).decode_one(key))}
    table = next(t for t in cut.state.tables.values() if t.id == view.planned.source)
    codec = KeyCodec(tuple(c.type for c in table.schema.key_columns), normalize=False)
    return dict(zip(table.schema.key, codec.decode_one(key), strict=True))


def _text(operator: Select | Aggregate, number: int) -> str:
    return operator.describe(number) if isinstance(operator, Select) else "the result of an aggregate is out of range"
