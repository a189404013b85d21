"""Indexes: what live views keep of a base table under some of its columns.

A node names the rows of interest if all rows of the table reach it, none of them can be in error on
the way, and its records begin with columns that are known:

    Arrange     the key of an arrangement; the identity of the row is in its record
    KeyedSink   the first key columns of a view that has all key columns of the table in its key

It may be a node of any view. Rows of foreign tables may have wrong cells, which views notice that
use them, so nothing is concluded there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from belvedere.catalog.definitions import LIVE, TableDefinition
from belvedere.encoding import KeyCodec
from belvedere.graph import Node
from belvedere.libraries import pa
from belvedere.operators.base import Stateless, ViewTable
from belvedere.operators.lineage import Wanted
from belvedere.readers.cut import Cut
from belvedere.why.state import PastSlot

_MOST_KEYS = 1000  # that are looked up one by one


@dataclass(frozen=True, slots=True)
class Index:
    """`known` are the columns of the base table, in the order of the records, of which the
    condition says something; `identity` says where the key columns of the table are in a record of
    a sink.
    """

    operator: ViewTable
    known: tuple[int, ...]
    identity: tuple[int, ...] = ()

    def prefixes(self, wanted: Wanted) -> pa.BinaryArray:
        """With what the records of wanted rows begin."""
        at = [wanted.columns.index(column) for column in self.known]
        codec = KeyCodec(tuple(wanted.types[i] for i in at))
        return codec.encode([wanted.values[i] for i in at]).unique()

    def identities(self, slot: PastSlot, prefixes: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
        """Of the rows under these prefixes in one slot."""
        yield from self.operator.identities(slot, prefixes, self.identity)


def index_for(cut: Cut, table: TableDefinition, wanted: Wanted) -> Index | None:
    """The one of which the condition knows most columns."""
    if wanted.nothing or not wanted.columns or len(wanted.values[0]) > _MOST_KEYS:
        return None
    if table.mapping is not None:
        return None
    return max(_usable(cut, table, wanted), key=lambda each: len(each.known), default=None)


def _usable(cut: Cut, table: TableDefinition, wanted: Wanted) -> Iterator[Index]:
    for view in cut.state.views.values():
        status = cut.state.status.get(view.id)
        if status is None or status.state != LIVE or status.live_since > cut.epoch:
            continue
        nodes = {node.id: node for node in view.nodes}
        for node in view.nodes:
            operator = node.operator
            if isinstance(operator, ViewTable) and operator.leads():
                passed = _passed(nodes, node, table)
                found = None if passed is None else _index(operator, passed, table, wanted)
                if found is not None:
                    yield found


def _passed(nodes: dict[int, Node], node: Node, table: TableDefinition) -> dict[int, int] | None:
    """Which column of the table each column of a node's input is; None if not all rows of the
    table reach it, or others do.
    """
    ((below, *others),) = node.inputs
    if others:
        return None
    each = nodes[below]
    if each.source:
        same = each.operator.base_table == table.id
        return {i: i for i in range(len(table.schema.columns))} if same else None
    operator = each.operator
    passed = operator.passed_on() if isinstance(operator, Stateless) else None
    if passed is None:
        return None
    inner = _passed(nodes, each, table)
    if inner is None:
        return None
    columns = {i: inner.get(column, -1) for i, column in enumerate(passed)}
    return {i: column for i, column in columns.items() if column >= 0}


def _index(
    operator: ViewTable, passed: dict[int, int], table: TableDefinition, wanted: Wanted
) -> Index | None:
    record = [passed.get(i, -1) for i in operator.leads()]
    if operator.names_rows:
        return Index(operator, tuple(record)) if set(record) <= set(wanted.columns) else None
    base = [table.schema.names.index(name) for name in table.schema.key]
    kinds = [column.type.name for column in table.schema.columns]
    if not set(base) <= set(record) or any(kinds[i] == "double" for i in base):
        return None
    known = _known(record, kinds, wanted)
    return Index(operator, known, tuple(record.index(i) for i in base)) if known else None


def _known(record: list[int], kinds: list[str], wanted: Wanted) -> tuple[int, ...]:
    """The first columns of a record that are known; a sink keeps -0.0 apart from 0.0."""
    found: list[int] = []
    for column in record:
        if column not in wanted.columns or column in found or kinds[column] == "double":
            break
        found.append(column)
    return tuple(found)
