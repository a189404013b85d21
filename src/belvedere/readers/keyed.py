"""Relations of a statement, in ranges of their keys, at a cut; and how these keys are stored."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.encoding.ranges import KeyRange, Ranges
from belvedere.libraries import pa
from belvedere.readers.base_rows import decode_rows, records_at, rows_at
from belvedere.readers.cut import Cut, check_existed, check_readable
from belvedere.readers.problems import problems
from belvedere.sql.query import Keyed
from belvedere.stores.base import Slot


def keyed_of(found: TableDefinition | ViewDefinition) -> Keyed:
    """How the keys of a relation are stored: only those of views may have NULLs, and -0.0."""
    is_view = isinstance(found, ViewDefinition)
    return Keyed(found.schema, normalize=not is_view, has_nulls=is_view)


def readable_view(cut: Cut, name: str) -> ViewDefinition:
    """The view, if it is live and has no errors."""
    view = cut.state.view(name)
    check_readable(cut.state, view, lambda v: problems(cut, v))
    return view


def table_at(
    cut: Cut, table: TableDefinition, low: bytes, high: bytes | None
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Keys and values of a base table at a cut, in no particular order."""
    check_existed(cut.state, table)
    return records_at(cut.store, table, cut.epoch, cut.vector, (KeyRange((), low, high),))


def read_slot(
    cut: Cut, found: TableDefinition | ViewDefinition, slot: Slot, ranges: Ranges
) -> Iterator[pa.Table]:
    """The part of a relation that is in one slot, at a cut.

    Base rows of a store that has no history of them are all in the first one.
    """
    store = cut.store
    if isinstance(found, ViewDefinition):
        yield from cut.read(found, ranges, slots=(slot,))
        return
    found = cut.state.readable(found)
    check_existed(cut.state, found)
    if found.delta or store.history is None:
        if slot == 0:
            yield from rows_at(store, found, cut.epoch, cut.vector, ranges)
        return
    with store.history.as_of(cut.vector) as rows:
        for each in ranges:
            for keys, values in rows.scan_slots(found.id, [slot], each.low, each.high):
                yield pa.table(decode_rows(found.schema, keys, values), schema=found.schema.arrow)


def read_at(cut: Cut, name: str, ranges: Ranges, size: int) -> Iterator[pa.Table]:
    """Rows of a table or view at a cut, in batches that begin with a size."""
    table = cut.state.tables.get(name)
    if table is not None:
        table = cut.state.readable(table)
        check_existed(cut.state, table)
        return rows_at(cut.store, table, cut.epoch, cut.vector, ranges, size)
    return cut.read(readable_view(cut, name), ranges, size)
