"""Level 0: from the log, or from a base table that is being loaded, to changes of rows.

A task takes the operations of the rows whose slots it owns, nets them per row, and turns values
into columns. What a row was before is told by the log, if the operations pass or it has
before-images; by the store, if that keeps a history of rows; or by the table's delta view, which
lives in the same slot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from belvedere.catalog.definitions import TableDefinition
from belvedere.changes.cells import CellChanges, cell_changes, merge, read_records
from belvedere.changes.net import NetChanges, combined, net
from belvedere.encoding import slots_of
from belvedere.encoding.binaries import Mask
from belvedere.encoding.order import stable_order
from belvedere.epochs.intent import Intent, Load
from belvedere.errors import Dropped, Stale
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import ID, WEIGHT, columns
from belvedere.operators.faults import record_faults
from belvedere.readers.base_rows import decode_rows, present, rows_as_of
from belvedere.stores.base import LogBlock, RowChanges, Shard, Store, Write, is_odd
from belvedere.types import Schema

ShardOf = Callable[[int], Shard]


Changes = NetChanges | CellChanges


def read_operations(
    store: Store, intent: Intent, slots: Sequence[int]
) -> tuple[dict[int, Changes], float]:
    """Net changes per table of this epoch's log range, for rows in these slots; and the time of the
    last operation. Of all tables whose history the store keeps, else of those that matter.
    """
    blocks: dict[int, list[LogBlock]] = {}
    last = 0.0
    for stream, high in intent.high.items():
        for block in store.base.read_log(stream, intent.low[stream], high):
            last = max(last, block.time)
            is_kept = store.history is not None and not block.passes
            if is_kept or block.table in intent.tables:
                blocks.setdefault(block.table, []).append(block)
    owned = {table: _owned(found, slots, intent.slots) for table, found in blocks.items()}
    return {table: _changes(found) for table, found in owned.items()}, last


def with_history(
    store: Store, intent: Intent, changes: Mapping[int, NetChanges]
) -> dict[int, NetChanges]:
    """Supply the rows before from the store's history. What was dropped has none, and nobody is
    left who would need it.
    """
    assert store.history is not None
    found = {}
    with store.history.as_of(intent.low) as rows:
        for table, net_changes in changes.items():
            try:
                before = rows.get_many(table, net_changes.keys)
            except Dropped:
                continue
            found[table] = NetChanges(net_changes.keys, before, net_changes.after)
    return found


def settle(
    store: Store, intent: Intent, changes: Mapping[int, NetChanges], slots: Sequence[int]
) -> None:
    """Tell the store what the rows of these slots are after the epoch."""
    assert store.history is not None
    place = cache(lambda table: slots_of(changes[table].keys, intent.slots))

    def rows(slot: int) -> Iterator[RowChanges]:
        for table, found in changes.items():
            yield _row_changes(table, found.filter(pa.array(place(table) == slot)))

    for slot in slots:
        store.history.settle(slot, intent.low, intent.high, rows(slot))


def _row_changes(table: int, changes: NetChanges) -> RowChanges:
    assert changes.before is not None  # from the history
    return RowChanges(table, changes.keys, changes.before, changes.after)


def _changes(blocks: list[LogBlock]) -> Changes:
    """Of one table; a foreign one is logged in cells."""
    return net(blocks) if blocks[0].cells is None else cell_changes(blocks)


def _owned(blocks: list[LogBlock], slots: Sequence[int], count: int) -> list[LogBlock]:
    if len(slots) == count:
        return blocks
    return [_some(b, np.isin(slots_of(b.keys, count), slots)) for b in blocks]


def _some(block: LogBlock, chosen: Mask) -> LogBlock:
    """A block with some of its operations."""
    mask, cells = pa.array(chosen), block.cells
    if cells is not None:
        operation = cells.column("operation").to_numpy()
        number = (np.cumsum(chosen) - 1).astype(np.int32)
        moved = pa.array(number[operation])
        cells = cells.set_column(0, "operation", moved).filter(pa.array(chosen[operation]))
    return replace(
        block,
        keys=block.keys.filter(mask),
        values=block.values.filter(mask),
        before=None if block.before is None else block.before.filter(mask),
        cells=cells,
    )


def with_before(
    table: TableDefinition, changes: Changes, slots: Sequence[int], count: int, shard: ShardOf
) -> NetChanges:
    """Supply the rows before from the delta view, and bring it up to date."""
    if not table.delta:
        assert isinstance(changes, NetChanges)  # a foreign table has a delta view
        if changes.before is None:
            raise Stale(f"the log of {table.name} has no before-images")
        return changes
    place = slots_of(changes.keys, count)
    parts = []
    for slot in slots:
        mine = changes.filter(pa.array(place == slot))
        if len(mine):
            before = shard(slot).get_many(table.delta, mine.keys)
            after = mine.after if isinstance(mine, NetChanges) else merge(before, mine.cells)
            shard(slot).write(Write(table.delta, mine.keys, after, before))
            parts.append(_images(table, NetChanges(mine.keys, before, after), shard(slot)))
    return NetChanges(
        *(combined([getattr(p, name) for p in parts]) for name in ("keys", "before", "after"))
    )


def _images(table: TableDefinition, records: NetChanges, shard: Shard) -> NetChanges:
    """Changes of rows from changes of records; of a foreign table what is wrong with its cells is
    noted.
    """
    assert records.before is not None  # from the delta view
    if table.mapping is None:
        return records
    before, after = (read_records(table.mapping, r) for r in (records.before, records.after))
    record_faults(shard, table.faults, records.keys, before, after)
    changes = NetChanges(records.keys, before[0], after[0])
    return changes.filter(pc.invert(is_odd(records.keys)))


def read_load(
    store: Store,
    table: TableDefinition,
    intent: Intent,
    load: Load,
    slots: Sequence[int],
    shard: ShardOf,
) -> NetChanges:
    """The rows of one loading step as of the epoch before, as insertions."""
    keys, values = [], []
    try:
        for k, v in _rows_to_load(store, table, intent, load, slots, shard):
            keys.append(k)
            values.append(v)
    except Dropped:
        # so all views that read it were dropped before, and nobody will read what is loaded here
        keys, values = [], []
    merged = combined(keys)
    order = pa.array(stable_order(merged))
    return NetChanges(
        merged.take(order), pa.nulls(len(merged), pa.binary()), combined(values).take(order)
    )


def _rows_to_load(
    store: Store,
    table: TableDefinition,
    intent: Intent,
    load: Load,
    slots: Sequence[int],
    shard: ShardOf,
) -> Iterator[tuple[pa.Array, pa.Array]]:
    if table.delta:
        yield from _delta_rows(table, *load.range, slots, shard)
    elif store.history is not None:
        with store.history.as_of(intent.low) as rows:
            yield from rows.scan_slots(load.table or table.id, slots, *load.range)
    else:
        for keys, values in rows_as_of(store, table, intent.low, *load.range):
            mask = pa.array(np.isin(slots_of(keys, intent.slots), slots))
            yield keys.filter(mask), values.filter(mask)


def _delta_rows(
    table: TableDefinition, low: bytes, high: bytes | None, slots: Sequence[int], shard: ShardOf
) -> Iterator[tuple[pa.Array, pa.Array]]:
    for slot in slots:
        yield from present(table, shard(slot).scan_batches(table.delta, low, high))


def as_changes(
    schema: Schema, changes: NetChanges, used: Collection[int] | None = None
) -> pa.Table:
    """Rows with weights, sorted by (key, weight): the row before with -1, the row after with +1.
    Columns that are not used are NULL.
    """
    assert changes.before is not None
    same = pc.equal(changes.before, changes.after).fill_null(False)
    if pc.any(same).as_py():
        changes = changes.filter(pc.invert(same))
    assert changes.before is not None
    count = len(changes)
    sides = (changes.before, changes.after)
    present = [side.is_valid().to_numpy(zero_copy_only=False) for side in sides]
    chosen = np.flatnonzero(np.stack(present, axis=1))  # before and after, row by row
    row, side = chosen >> 1, chosen & 1
    keys = changes.keys.take(pa.array(row))
    values = pa.concat_arrays(sides).take(pa.array(row + count * side))
    data = decode_rows(schema, keys, values, used)
    return pa.table([*data, pa.array(2 * side - 1), keys], names=[*columns(len(data)), WEIGHT, ID])
