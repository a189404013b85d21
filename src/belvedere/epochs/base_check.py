"""The picture of a foreign table, which is its delta view, against the table itself.

    missing      the foreign store has the row, our picture has not
    extra        our picture has it, the foreign store has not
    different    both have the key, with different values

The picture is of an epoch, the table of now, and others write meanwhile. A row that is the same in
both is right. One that differs is looked at again: our row as of an epoch with vector V, then the
foreign row, then a barrier B, which covers all that was acknowledged before. If the log has no
operation on the row from V to B, then nothing that is logged can explain the difference, and the
row is wrong. Else it is looked at again after the next epochs, a few times; what is written faster
than that stays undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from belvedere.catalog import layout
from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.state import read_state
from belvedere.changes.cells import Integers
from belvedere.encoding import slots_of
from belvedere.epochs.verify import SHOWN, Difference
from belvedere.errors import CatalogError, StoreError
from belvedere.libraries import np, pa, pc
from belvedere.readers.base_rows import decode_rows, delta_rows, present
from belvedere.readers.cut import Cut, open_cut
from belvedere.stores.base import ForeignTables, Store
from belvedere.types import Epoch, Vector

TRIES = 5
AT_ONCE = 5000  # rows that are decided by one barrier
Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"
CatchUp = Callable[[], object]  # bring what is logged into the epochs


@dataclass(frozen=True, slots=True)
class BaseVerification:
    table: str
    epoch: Epoch
    rows: int  # of the foreign table
    counts: dict[str, int]
    differences: tuple[Difference, ...]  # at most SHOWN; `expected` is the foreign row
    undecided: int = 0  # rows that were written again and again meanwhile

    @property
    def ok(self) -> bool:
        return not sum(self.counts.values())


def foreign_tables(store: Store) -> ForeignTables:
    if store.foreign is None:
        raise StoreError(
            f"{store.url} owns its tables, so there is nothing to compare them with: verify the"
            " views, without --base"
        )
    return store.foreign


def foreign_table(store: Store, name: str) -> TableDefinition:
    """A table that is somebody else's, and completely known."""
    state = store.catalog.read(read_state)
    table = state.table(name)
    if table.id in state.adopting:
        raise CatalogError(
            f"table {table.name} is being adopted: run catch_up(), or start() a pipeline and wait"
        )
    return table


def verify_base(store: Store, name: str, catch_up: CatchUp) -> BaseVerification:
    """Compare the picture of a table with the table; brings epochs up to date in between."""
    foreign = foreign_tables(store)
    catch_up()
    report = BaseReport(foreign_table(store, name))
    loads = foreign.bulk_loads().get(report.table.id, 0)  # of before the rows are looked at
    with open_cut(store) as cut:
        report.epoch = cut.epoch
        doubtful = list(gather(_doubtful(cut, foreign, report), AT_ONCE))
    for keys in doubtful:
        _decide(store, keys, report, catch_up)
    found = report.finished()
    if found.ok and not found.undecided:
        note_checked(store, report.table, loads)
    return found


def note_checked(store: Store, table: TableDefinition, loads: int) -> None:
    """The picture is right with so many bulk loads."""
    store.catalog.transact(lambda t: layout.CHECKED.put(t, table.id, loads))


@dataclass
class BaseReport:
    """What is known so far."""

    table: TableDefinition
    epoch: Epoch = 0
    rows: int = 0
    undecided: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    def add(self, keys: pa.BinaryArray, ours: pa.BinaryArray, theirs: pa.BinaryArray) -> None:
        """Rows that are wrong."""
        found, expected = (self._decoded(keys, rows) for rows in (ours, theirs))
        for mine, other in zip(found, expected, strict=True):
            kind = "missing" if mine is None else "extra" if other is None else "different"
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if len(self.differences) < SHOWN:
                self.differences.append(Difference(kind, other, mine))

    def _decoded(self, keys: pa.BinaryArray, rows: pa.BinaryArray) -> list[dict[str, Any] | None]:
        schema, there = self.table.schema, rows.is_valid()
        columns = decode_rows(schema, keys.filter(there), rows.filter(there))
        decoded = iter(pa.table(columns, names=schema.names).to_pylist())
        return [next(decoded) if is_there else None for is_there in there.to_pylist()]

    def finished(self) -> BaseVerification:
        shown = tuple(self.differences)
        known = self.table.name, self.epoch, self.rows, self.counts
        return BaseVerification(*known, shown, self.undecided)


def _doubtful(cut: Cut, foreign: ForeignTables, report: BaseReport) -> Iterator[pa.BinaryArray]:
    """Keys of rows that look different at first sight."""
    table = report.table
    for keys, rows in foreign.shown_rows(table.id):
        report.rows += len(keys)
        yield keys.filter(differ(rows_in_picture(cut, table, keys), rows))
    for keys, _ in present(table, records_in_picture(cut, table)):
        with cut.store.base.snapshot() as now:
            yield keys.filter(now.get_many(table.id, keys).is_null())


def _decide(store: Store, keys: pa.BinaryArray, report: BaseReport, catch_up: CatchUp) -> None:
    table = report.table
    for attempt in range(TRIES):
        if attempt:
            catch_up()
        with open_cut(store) as cut, store.base.snapshot() as now:
            ours = rows_in_picture(cut, table, keys)
            theirs = now.get_many(table.id, keys)
            differs = differ(ours, theirs)
            written = was_written(store, table, keys, cut.vector)
        wrong = pc.and_not(differs, written)
        report.add(*(part.filter(wrong) for part in (keys, ours, theirs)))
        keys = keys.filter(pc.and_(differs, written))
        if not len(keys):
            return
    report.undecided += len(keys)


def differ(ours: pa.BinaryArray, theirs: pa.BinaryArray) -> pa.BooleanArray:
    """Where they are not equal; NULL is a row that is not there."""
    both_absent = pc.and_(ours.is_null(), theirs.is_null())
    return pc.invert(pc.or_(pc.equal(ours, theirs).fill_null(False), both_absent))


def was_written(
    store: Store, table: TableDefinition, keys: pa.BinaryArray, since: Vector
) -> pa.BooleanArray:
    """Which of the rows have operations that a vector does not contain, up to now."""
    found: list[pa.BinaryArray] = [pa.array([], pa.binary())]
    for stream, high in store.base.barrier().items():
        if high > since[stream]:
            for block in store.base.read_log(stream, since[stream], high):
                if block.table == table.id:
                    found.append(block.keys)
    return pc.is_in(keys, pa.concat_arrays(found))


def rows_in_picture(cut: Cut, table: TableDefinition, keys: pa.BinaryArray) -> pa.BinaryArray:
    return delta_rows(table, get_records(cut, table, keys))


def get_records(cut: Cut, table: TableDefinition, keys: pa.BinaryArray) -> pa.BinaryArray:
    """Records of a delta view, aligned with keys."""
    slots = slots_of(keys, cut.store.state.slots)
    places: list[Integers] = []
    records: list[pa.BinaryArray] = []
    for slot in np.unique(slots).tolist():
        mine = np.flatnonzero(slots == slot)
        reader = cut.store.state.reader(slot, cut.epoch)
        try:
            records.append(reader.get_many(table.delta, keys.take(pa.array(mine))))
        finally:
            reader.close()
        places.append(mine)
    if not records:
        return pa.array([], pa.binary())
    order = np.argsort(np.concatenate(places))
    return pa.concat_arrays(records).take(pa.array(order))


def records_in_picture(cut: Cut, table: TableDefinition) -> Iterator[Batch]:
    """All keys and records of a delta view."""
    for slot in range(cut.store.state.slots):
        reader = cut.store.state.reader(slot, cut.epoch)
        try:
            yield from reader.scan(table.delta, batch=AT_ONCE)
        finally:
            reader.close()


def gather(parts: Iterator[pa.BinaryArray], size: int) -> Iterator[pa.BinaryArray]:
    """The same keys, without repetitions next to each other, in arrays of at least `size` but the
    last.
    """
    waiting: list[pa.BinaryArray] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= size:
            yield pa.concat_arrays(waiting).unique()
            waiting = []
    if any(map(len, waiting)):
        yield pa.concat_arrays(waiting).unique()
