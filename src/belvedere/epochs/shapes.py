"""The shapes of the tables that an epoch writes, for stores that make tables with their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.operators.base import StateTable
from belvedere.operators.errors import error_state
from belvedere.stores.base import TableShape
from belvedere.types import Column, SqlType


def table_shapes(
    views: Sequence[ViewDefinition], tables: Sequence[TableDefinition]
) -> list[TableShape]:
    """Each table once; a view's under the view's name and with the names of its columns."""
    shapes = {shape.table: shape for shape in _auxiliary(views, tables)}
    shapes |= {view.planned.sink.table: _view(view) for view in views}
    return list(shapes.values())


def _auxiliary(
    views: Sequence[ViewDefinition], tables: Sequence[TableDefinition]
) -> Iterator[TableShape]:
    for view in views:
        for node in view.nodes:
            for table in node.operator.tables():
                yield _kept(table)
    for base in tables:
        if base.delta:
            yield _delta(base)
        for faults in base.faults:
            yield _kept(error_state(faults))


def _kept(table: StateTable) -> TableShape:
    return TableShape(table.id, "", _numbered("k", table.key), _numbered("v", table.value))


def _delta(base: TableDefinition) -> TableShape:
    values = base.schema.value_columns if base.mapping is None else ()  # else records of cells
    return TableShape(base.delta, "", base.schema.key_columns, values)


def _view(view: ViewDefinition) -> TableShape:
    """A view without a key has its rows as keys, and how often each is there."""
    sink, schema = view.planned.sink, view.schema
    if sink.counts_rows:
        return TableShape(sink.table, view.name, schema.columns, counts=True)
    values = tuple(_shown(view, number) for number in sink.value_columns())
    return TableShape(sink.table, view.name, schema.key_columns, values)


def _shown(view: ViewDefinition, number: int) -> Column:
    """A column of what the view is made of, under the name that the view gives it, if it does."""
    planned = view.planned
    if number in planned.columns:
        return planned.schema.columns[planned.columns.index(number)]
    return Column(f"_{number}", planned.sink.types[number])


def _numbered(letter: str, types: Sequence[SqlType]) -> tuple[Column, ...]:
    return tuple(Column(f"{letter}{i}", kind) for i, kind in enumerate(types))
