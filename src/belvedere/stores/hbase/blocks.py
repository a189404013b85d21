"""From captured frames to blocks of the log: rows become keys, cells those of mapped columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass

from belvedere.libraries import np, npt, pa
from belvedere.stores.base import (
    DELETE_FAMILY,
    DELETE_FAMILY_VERSION,
    KeyedCells,
    LogBlock,
    TableId,
    cells_schema,
)
from belvedere.stores.base.mapping import Mapping
from belvedere.stores.hbase.frames import Frame
from belvedere.stores.hbase.log_index import Adopted, Entry


@dataclass(frozen=True, slots=True)
class Part:
    """What a frame has for one table."""

    keys: pa.BinaryArray
    cells: pa.RecordBatch


def blocks_of(
    entry: Entry, frames: Sequence[Frame], tables: MappingOf[TableId, Adopted]
) -> Iterator[LogBlock]:
    """One block for each adopted table that is in an entry.

    Operations of other tables have positions too: between blocks there may be some that are in
    none.
    """
    found = []
    for table in sorted(tables):
        adopted = tables[table]
        if entry.position >= adopted.since:
            parts = [part_of(frame, adopted.mapping) for frame in frames]
            some = [part for part in parts if part is not None]
            if some:
                found.append((table, some))
    time = max((frame.head.last_time for frame in frames), default=0) / 1000
    position = entry.position
    for number, (table, pieces) in enumerate(found, 1):
        keys, cells = join_parts(pieces)
        values = pa.nulls(len(keys), pa.binary())
        is_last = number == len(found)
        yield LogBlock("log", position, table, time, keys, values, None, is_last, cells)
        position += len(keys)


def join_parts(parts: Sequence[Part]) -> KeyedCells:
    """Parts one behind the other; operations are counted on."""
    if not parts:
        return pa.array([], pa.binary()), pa.RecordBatch.from_pylist([], schema=cells_schema())
    if len(parts) == 1:
        return parts[0].keys, parts[0].cells
    moved, before = [], 0
    for part in parts:
        operations = part.cells.column(0).to_numpy() + np.int32(before)
        columns = [pa.array(operations), *part.cells.columns[1:]]
        moved.append(pa.RecordBatch.from_arrays(columns, schema=cells_schema()))
        before += len(part.keys)
    return pa.concat_arrays([part.keys for part in parts]), pa.concat_batches(moved)


def part_of(frame: Frame, mapping: Mapping) -> Part | None:
    """The operations and cells of a mapped table; None if the frame has none."""
    own = np.array([region.table == mapping.source for region in frame.head.regions], bool)
    if not own.any():
        return None
    numbers = np.flatnonzero(own[frame.regions])
    if not len(numbers):
        return None
    rows = frame.rows if len(numbers) == len(frame.rows) else frame.rows.take(pa.array(numbers))
    operation_of = np.full(len(frame.rows), -1, np.int32)
    operation_of[numbers] = np.arange(len(numbers), dtype=np.int32)
    return Part(mapping.all_keys_of(rows), _cells(frame, mapping, operation_of[frame.operations]))


def _cells(frame: Frame, mapping: Mapping, operations: npt.NDArray[np.int32]) -> pa.RecordBatch:
    """Cells of operations that are ours (not -1), in columns or families that are mapped."""
    family_of, column_of = _columns(frame, mapping)
    is_family = (frame.types == DELETE_FAMILY) | (frame.types == DELETE_FAMILY_VERSION)
    families = family_of[frame.columns]
    columns = np.where(is_family, np.int16(-1), column_of[frame.columns])
    mapped = np.where(is_family, families, columns) >= 0
    keep = mapped & (operations >= 0)
    values = frame.values if keep.all() else frame.values.filter(pa.array(keep))
    kept = operations[keep]
    numbers = [kept, families[keep], columns[keep], frame.types[keep], frame.timestamps[keep]]
    sequences = frame.sequences[frame.operations[keep]]
    arrays = [pa.array(each) for each in (*numbers, sequences)]
    return pa.RecordBatch.from_arrays([*arrays, values], schema=cells_schema())


def _columns(frame: Frame, mapping: Mapping) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    """For every column of a frame the numbers of its family and its column, -1 if not mapped."""
    families = {name: number for number, name in enumerate(mapping.families)}
    columns = {(c.family, c.qualifier): number for number, c in enumerate(mapping.columns)}
    family_of = [families.get(name, -1) for name in frame.families.to_pylist()]
    named = zip(family_of, frame.qualifiers.to_pylist(), strict=True)
    column_of = [columns.get(name, -1) for name in named]
    return np.array(family_of, np.int16), np.array(column_of, np.int16)
