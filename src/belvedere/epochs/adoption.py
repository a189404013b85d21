"""Foreign tables join while they change: what they have is put into the log beside what happens.

    captured   from CREATE TABLE on, everything that happens to the table is logged
    scanned    a coordinator logs a scan of it; cells merge by time stamp, so it does not matter
               where between other operations the scan stands
    complete   when the epochs contain a barrier that was taken after the scan

Before that the delta view may show a row from the future beside one from the past, so no view uses
it: views on the table wait to join. A scan that a crash interrupts is made again.
"""

from __future__ import annotations

from functools import partial

from belvedere.catalog import layout
from belvedere.catalog.state import bump, read_head
from belvedere.epochs.lease import Lease, check_fence
from belvedere.stores.base import CatalogTransaction, Store, TableId
from belvedere.types import Vector


def adopt_tables(store: Store, lease: Lease) -> None:
    """Take foreign tables that are not complete a step further."""
    for table, vector in store.catalog.read(layout.ADOPTIONS.all).items():
        reached = _scan(store, table) if vector is None else vector
        store.catalog.transact(partial(_note, lease=lease, table=table, vector=reached))


def _scan(store: Store, table: TableId) -> Vector:
    assert store.foreign is not None  # only a store with foreign tables has adoptions
    store.foreign.log_scan(table)
    return store.base.barrier()


def _note(t: CatalogTransaction, lease: Lease, table: TableId, vector: Vector) -> None:
    check_fence(t, lease)
    if table not in layout.ADOPTIONS.all(t):
        return  # dropped meanwhile
    if read_head(t).vector.covers(vector):
        layout.ADOPTIONS.delete(t, table)
        bump(t)
    else:
        layout.ADOPTIONS.put(t, table, vector)
