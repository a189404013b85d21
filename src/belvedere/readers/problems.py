"""Rows in error: which rows a view cannot evaluate, and which expression fails (rule R9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from belvedere.catalog.definitions import ViewDefinition
from belvedere.encoding import KeyCodec
from belvedere.encoding.one_key import prefix_length
from belvedere.errors import Damaged
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.errors import COUNT, COUNTER, ROW
from belvedere.operators.graph import Node, Source, error_table
from belvedere.operators.join import MISSING, Join
from belvedere.operators.select import Select
from belvedere.operators.set_operation import SetOperation
from belvedere.readers.cut import Cut
from belvedere.types import SqlType

LISTED = 100
# one relation's share of an identity: names and types
Part = tuple[tuple[str, ...], tuple[SqlType, ...]]


def problems(cut: Cut, view: ViewDefinition) -> list[dict[str, Any]]:
    """At most `LISTED` rows in error: their key and the expression that raises."""
    found: list[dict[str, Any]] = []
    for node in view.nodes:
        if len(found) < LISTED and error_table(node) and cut.state.errors.get(error_table(node)):
            found += _records(cut, view, node)
    return found[:LISTED]


def _records(cut: Cut, view: ViewDefinition, node: Node) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    nodes = {n.id: n for n in view.nodes}
    parts = list(
        _identity(
            cut, nodes, node if isinstance(node.operator, Aggregate) else nodes[node.below[0]]
        )
    )
    for slot in range(cut.store.state.slots):
        reader = cut.store.state.reader(slot, cut.epoch)
        for keys, values in reader.scan(error_table(node)):
            for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
                if key != COUNTER and len(rows) < LISTED:
                    rows.append(
                        {
                            **_decoded(key[len(ROW) :], parts),
                            "expression": _text(node, COUNT.unpack(value)[1]),
                        }
                    )
        reader.close()
    return rows


def _identity(cut: Cut, nodes: dict[int, Node], node: Node) -> Iterator[Part]:
    """What identifies a row that this node emits."""
    operator = node.operator
    if isinstance(operator, Source):
        table = next(t for t in cut.state.tables.values() if t.id == operator.table)
        yield table.schema.key, tuple(c.type for c in table.schema.key_columns)
    elif isinstance(operator, Aggregate):
        yield tuple(f"group {i + 1}" for i in range(len(operator.groups))), operator.groups
    elif isinstance(operator, SetOperation):
        yield tuple(f"column {i + 1}" for i in range(len(operator.types))), operator.types
    elif isinstance(operator, Join):
        for port, side in enumerate(("left", "right")):
            if operator.identity in ("both", side):
                yield from _identity(cut, nodes, nodes[node.inputs[port][0]])
    else:
        yield from _identity(cut, nodes, nodes[node.below[0]])


def _decoded(key: bytes, parts: list[Part]) -> dict[str, Any]:
    """The columns of an identity by name; a name that two relations have gets a number."""
    found: dict[str, Any] = {}
    rest = key
    try:
        for names, types in parts:
            length = len(MISSING) if rest.startswith(MISSING) else prefix_length(rest, types)
            values = (
                [None] * len(types)
                if rest.startswith(MISSING)
                else KeyCodec(types, normalize=False).decode_one(rest[:length])
            )
            rest = rest[length:]
            for name, value in zip(names, values, strict=True):
                found[name if name not in found else f"{name} {len(found) + 1}"] = value
    except Damaged:
        rest = key
    return {"row": key.hex()} if rest else found  # of a UNION: its branches have keys of their own


def _text(node: Node, number: int) -> str:
    operator = node.operator
    return (
        operator.describe(number)
        if isinstance(operator, Select)
        else "the result of an aggregate is out of range"
    )
