"""Repair of the picture of a foreign table, after something that no log shows.

Records of the delta view that show other cells than the foreign table has are made anew from those
cells, in epochs of their own, and the views take the changes as they take those of the log. What is
decided how is as in `base_check`: under the lease no epoch moves, so a row without an operation
from the head to a barrier is in the foreign table as it was at the head, however it came there.

A record that is made anew knows nothing of the past: no markers that the foreign store has
forgotten, no sequence ids, which begin again when a table is truncated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.state import committed
from belvedere.changes.cells import SHOWS_NOTHING, records_of, shown_cells
from belvedere.epochs.base_check import (
    AT_ONCE,
    TRIES,
    BaseVerification,
    foreign_table,
    foreign_tables,
    gather,
    get_records,
    note_checked,
    records_in_picture,
    verify_base,
    was_written,
)
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.corrections import MENDED, to_bytes
from belvedere.epochs.intent import MEND
from belvedere.epochs.repair import alone, write_corrections
from belvedere.libraries import pa, pc
from belvedere.readers.cut import Cut, open_cut
from belvedere.stores.base import ForeignTables, Store

_BYTES = 512 << 10  # of one correction: catalogs have limits for a value


def repair_base(coordinator: Coordinator, name: str) -> BaseVerification:
    """Make the picture of a table, and with it the views, as the table is; returns what was wrong
    before. Rows that are written all the time may stay undecided.
    """
    store = coordinator.store
    foreign = foreign_tables(store)
    with alone(coordinator):
        with coordinator.beating():
            found = verify_base(store, name, partial(_catch_up, coordinator))
        table = foreign_table(store, name)
        loads = foreign.bulk_loads().get(table.id, 0)
        undecided = _Mending(coordinator, foreign, table).run()
        if not undecided:
            note_checked(store, table, loads)
        return replace(found, undecided=undecided)


def _catch_up(coordinator: Coordinator) -> None:
    with coordinator.beating():
        target = coordinator.store.base.barrier()
    while not committed(coordinator.store).vector.covers(target):
        if coordinator.step(target) is None:
            return


@dataclass(frozen=True, slots=True)
class _Mending:
    coordinator: Coordinator
    foreign: ForeignTables
    table: TableDefinition

    @property
    def store(self) -> Store:
        return self.coordinator.store

    def run(self) -> int:
        """How many rows are left undecided."""
        with self.coordinator.beating(), open_cut(self.store) as cut:
            doubtful = list(gather(self._doubtful(cut), AT_ONCE))
        return sum(self._mend(keys) for keys in doubtful)

    def _doubtful(self, cut: Cut) -> Iterator[pa.BinaryArray]:
        """Keys of rows whose record shows other cells than are there; records of rows of which
        nothing is there.
        """
        for keys, cells in self.foreign.scan_cells(self.table.id):
            ours = get_records(cut, self.table, keys)
            yield keys.filter(_differ(ours, records_of(keys, (keys, cells))))
        for keys, _ in records_in_picture(cut, self.table):
            there, _ = self.foreign.cells_of(self.table.id, keys)
            yield keys.filter(pc.invert(pc.is_in(keys, there)))

    def _mend(self, keys: pa.BinaryArray) -> int:
        for _ in range(TRIES):
            with self.coordinator.beating(), open_cut(self.store) as cut:
                ours = get_records(cut, self.table, keys)
                theirs = records_of(keys, self.foreign.cells_of(self.table.id, keys))
                differ = _differ(ours, theirs)
                written = was_written(self.store, self.table, keys, cut.vector)
            wrong = pc.and_not(differ, written)
            self._write(keys.filter(wrong), theirs.filter(wrong))
            keys = keys.filter(pc.and_(differ, written))
            if not len(keys):
                return 0
            _catch_up(self.coordinator)
        return len(keys)

    def _write(self, keys: pa.BinaryArray, records: pa.BinaryArray) -> None:
        ids = pa.array([self.table.id] * len(keys), pa.int64())
        rows = pa.table([ids, keys, records], schema=MENDED)
        for part in _parts(rows):
            write_corrections(self.coordinator, MEND, to_bytes(part))


def _differ(ours: pa.BinaryArray, theirs: pa.BinaryArray) -> pa.BooleanArray:
    """Whether records show different cells, or there is one of which the foreign store has nothing.

    Markers alone make no difference: the foreign store may have forgotten them.
    """
    same = pc.equal(shown_cells(ours), shown_cells(theirs)).fill_null(False)
    return pc.invert(pc.or_(same, pc.and_(ours.is_null(), _is_empty(theirs))))


def _is_empty(records: pa.BinaryArray) -> pa.BooleanArray:
    nothing = pc.equal(shown_cells(records), pa.scalar(SHOWS_NOTHING, pa.binary()))
    return pc.or_(records.is_null(), nothing.fill_null(False))


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    """Parts of about so many bytes, each of one row at least."""
    while rows.num_rows:
        share = max(1, int(rows.num_rows * _BYTES / max(rows.nbytes, 1)))
        yield rows.slice(0, share)
        rows = rows.slice(share)
