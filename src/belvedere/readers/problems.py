"""Rows in error: which rows a view cannot evaluate, and which expression fails (rule R9)."""

from __future__ import annotations

from typing import Any

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.encoding import KeyCodec
from belvedere.encoding.one_key import prefix_length
from belvedere.errors import Damaged
from belvedere.graph import Node, error_table
from belvedere.operators.base import Identity, IdentityPart
from belvedere.operators.errors import COUNT, COUNTER, identity_in
from belvedere.operators.faults import describe_fault
from belvedere.operators.matching import MISSING
from belvedere.readers.cut import Cut
from belvedere.stores.base import ODD, TableId
from belvedere.types import Column

LISTED = 100


def problems(cut: Cut, view: ViewDefinition) -> list[dict[str, Any]]:
    """At most `LISTED` rows in error: their key and the expression that raises."""
    found: list[dict[str, Any]] = []
    for node in view.nodes:
        if len(found) < LISTED and error_table(node) and cut.state.errors.get(error_table(node)):
            found += _records(cut, view, node)
    for table, column, faults in cut.state.faults_of(view):
        if len(found) < LISTED and cut.state.errors.get(faults):
            found += faulty_rows(cut, table, column, faults, LISTED)
    return found[:LISTED]


def _records(cut: Cut, view: ViewDefinition, node: Node) -> list[dict[str, Any]]:
    identity = _identity_of_errors(cut, {n.id: n for n in view.nodes}, node)
    return [
        {**_decoded(key, identity), "expression": node.operator.describe(number)}
        for key, number in _wrong(cut, error_table(node), LISTED)
    ]


def faulty_rows(
    cut: Cut, table: TableDefinition, column: Column, faults: TableId, most: int
) -> list[dict[str, Any]]:
    """Some rows of a foreign table whose column is wrong: their key, and what is wrong."""
    identity = _key(table)
    return [
        {**_decoded(key, identity), "expression": describe_fault(column.name, column.type, code)}
        for key, code in _wrong(cut, faults, most)
    ]


def odd_rows(cut: Cut, table: TableDefinition, most: int) -> list[bytes]:
    """Some rows of a foreign table whose key is not of the declared types, as they are there."""
    return [key.removeprefix(ODD) for key, _ in _wrong(cut, table.faults[-1], most)]


def _wrong(cut: Cut, table: TableId, most: int) -> list[tuple[bytes, int]]:
    """Some rows of an error table: what identifies them, and the number that is kept."""
    found: list[tuple[bytes, int]] = []
    for slot in range(cut.store.state.slots):
        reader = cut.store.state.reader(slot, cut.epoch)
        for keys, values in reader.scan(table, batch=most + 1):
            for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
                if key != COUNTER and len(found) < most:
                    found.append((identity_in(key, value), COUNT.unpack_from(value)[1]))
            if len(found) >= most:
                break
        reader.close()
    return found


def _identity_of_errors(cut: Cut, nodes: dict[int, Node], node: Node) -> Identity:
    """What identifies the rows that a node's error records stand for."""
    of_result = node.operator.errors_of == "result"
    return _identity(cut, nodes, node if of_result else nodes[node.below[0]])


def _identity(cut: Cut, nodes: dict[int, Node], node: Node) -> Identity:
    """What identifies a row that this node emits."""
    if node.source:
        inputs = [_key_of(cut, node.operator.base_table)]
    else:
        inputs = [_identity(cut, nodes, nodes[port[0]]) for port in node.inputs]
    return node.operator.identify(inputs)


def _key_of(cut: Cut, table: TableId) -> Identity:
    return _key(next(t for t in cut.state.tables.values() if t.id == table))


def _key(table: TableDefinition) -> Identity:
    schema = table.schema
    return (IdentityPart(schema.key, tuple(c.type for c in schema.key_columns)),)


def _decoded(key: bytes, identity: Identity) -> dict[str, Any]:
    """The columns of an identity by name; a name that two relations have gets a number."""
    found: dict[str, Any] = {}
    rest = key
    try:
        for part in identity:
            values, rest = _next_part(rest, part)
            for name, value in zip(part.names, values, strict=True):
                found[name if name not in found else f"{name} {len(found) + 1}"] = value
    except Damaged:
        rest = key
    return {"row": key.hex()} if rest else found  # of a UNION: its branches have keys of their own


def _next_part(key: bytes, part: IdentityPart) -> tuple[list[Any], bytes]:
    """The values with which a key begins, and what follows; a side without a row has NULLs."""
    if key.startswith(MISSING):
        return [None] * len(part.types), key[len(MISSING) :]
    length = prefix_length(key, part.types)
    values = KeyCodec(part.types, normalize=False).decode_one(key[:length])
    return list(values), key[length:]
