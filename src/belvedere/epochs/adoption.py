"""Foreign tables join while they change: what they have is put into the log beside what happens.

    captured   from CREATE TABLE on, everything that happens to the table is logged
    scanned    a coordinator logs a scan of it; cells merge by time stamp, so it does not matter
               where between other operations the scan stands
    complete   when the epochs contain a barrier that was taken after the scan

Before that the delta view may show a row from the future beside one from the past, so no view uses
it: views on the table wait to join. A scan is ranges of rows, each logged by a task of its own. One
that a crash interrupts is made again from the beginning: what is in the log twice merges to the
same.

Relations of sources are copied by who follows them, and complete in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from belvedere.catalog import layout
from belvedere.catalog.filling import note_since
from belvedere.catalog.state import bump, read_head
from belvedere.epochs.lease import Lease, check_fence
from belvedere.stores.base import CatalogTransaction, ForeignTables, RowRange, Store, TableId
from belvedere.types import Vector


@runtime_checkable
class Scans(Protocol):
    """What runs epochs somewhere else may run scans there too."""

    def scan(self, table: TableId, ranges: Sequence[RowRange]) -> None:
        """Log these ranges of a foreign table, each by `ForeignTables.log_range`."""


def adopt_tables(
    store: Store, lease: Lease, runner: object, adopted: Mapping[TableId, Vector | None]
) -> None:
    """Take tables of others that are not complete a step further; a runner that can scans them."""
    for table, vector in adopted.items():
        if vector is None and store.foreign is None:
            continue  # who follows the source copies it
        reached = _scan(store, table, runner) if vector is None else vector
        note = partial(_note, lease=lease, table=table, seen=vector, vector=reached)
        store.catalog.transact(note)


def _scan(store: Store, table: TableId, runner: object) -> Vector:
    assert store.foreign is not None  # only a store with foreign tables has adoptions
    ranges = store.foreign.scan_ranges(table)
    if isinstance(runner, Scans):
        runner.scan(table, ranges)
    else:
        _scan_here(store.foreign, table, ranges)
    return store.base.barrier()


def _scan_here(foreign: ForeignTables, table: TableId, ranges: Sequence[RowRange]) -> None:
    for rows in ranges:
        foreign.log_range(table, rows)


def _note(
    t: CatalogTransaction, lease: Lease, table: TableId, seen: Vector | None, vector: Vector
) -> None:
    check_fence(t, lease)
    adopting = layout.ADOPTIONS.all(t)
    if table not in adopting or adopting[table] != seen:
        return  # dropped meanwhile, or somebody wants it copied once more
    if read_head(t).vector.covers(vector):
        layout.ADOPTIONS.delete(t, table)
        note_since(t, table, read_head(t).epoch)
        bump(t)
    else:
        layout.ADOPTIONS.put(t, table, vector)
