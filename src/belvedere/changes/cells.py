"""From cells to rows: what a row of a captured table is after cells were put and deleted.

The log of such a table has cells, not rows, and no rows before. So its delta view keeps a *record*
per row: of every column the newest puts, the markers of deletes, and the last sequence id that was
applied. Merging is by time stamps and does not depend on the order in which cells arrive:

    hidden    a put is hidden by a marker of its column or family with its time stamp or a later one
              (markers of a single version: with exactly its own), whichever came first
    newest    of the puts that are not hidden the one with the largest time stamp is the value; of
              equal ones that with the largest sequence id; cells of a scan have 0
    once      a cell at or below the last applied sequence id of its row was delivered before

    record = last sequence id | number of entries | entries | values of the puts among them

Markers stay for ever, also those of rows that are gone: a put that comes late is hidden by them.
HBase itself forgets them at a major compaction, and then shows such a put; we never do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from belvedere.changes.net import combined
from belvedere.encoding.binaries import Mask, Numbers, Packed, fixed_binary, unpack, weave
from belvedere.encoding.order import run_starts, stable_order
from belvedere.errors import Damaged
from belvedere.libraries import np, npt, pa, pc
from belvedere.stores.base import (
    DELETE,
    DELETE_COLUMN,
    DELETE_FAMILY,
    DELETE_FAMILY_VERSION,
    PUT,
    Codes,
    KeyedCells,
    LogBlock,
    Mapping,
    read_cells,
)

VERSIONS = 3  # newest puts of a column that are kept, for deletes of single versions


Integers: TypeAlias = "npt.NDArray[np.int64]"
_HEADER: Any = [("sequence", "<i8"), ("entries", "<u4")]
_ENTRY: Any = [
    ("type", "u1"),
    ("family", "<i2"),
    ("column", "<i2"),
    ("timestamp", "<i8"),
    ("sequence", "<i8"),
    ("length", "<u4"),
]
_HEADER_SIZE, _ENTRY_SIZE = 12, 25
SHOWS_NOTHING = bytes(_HEADER_SIZE)  # what `shown_cells` says of markers alone


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells side by side: entries with the fields of `_ENTRY`, and for each the row it is of, a
    number in some array of keys, and its value.

    A marker of a whole family has the column -1. Only puts have a value; others an empty one.
    """

    row: Integers
    entry: Numbers
    value: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, name: str) -> Integers:
        field: Integers = self.entry[name].astype(np.int64)
        return field

    def take(self, places: Integers | Mask) -> Cells:
        """Those at some places, or those that a mask chooses."""
        at = np.flatnonzero(places) if places.dtype == bool else places
        return Cells(self.row[at], self.entry[at], self.value.take(pa.array(at)))


@dataclass(frozen=True, slots=True)
class CellChanges:
    """Cells of some rows, by their keys in order; as `NetChanges` for tables of cells."""

    keys: pa.BinaryArray
    cells: Cells

    def __len__(self) -> int:
        return len(self.keys)

    def filter(self, mask: pa.BooleanArray) -> CellChanges:
        kept = mask.to_numpy(zero_copy_only=False)
        places = np.cumsum(kept) - 1  # where a kept row stands afterwards
        cells = self.cells.take(kept[self.cells.row])
        moved = Cells(places[cells.row], cells.entry, cells.value)
        return CellChanges(self.keys.filter(mask), moved)


def cell_changes(blocks: Sequence[LogBlock]) -> CellChanges:
    """The cells of blocks of one table, by row."""
    keys = combined([block.keys for block in blocks])
    order = stable_order(keys)
    starts = run_starts(keys.take(pa.array(order)))
    row_of = np.empty(len(keys), np.int64)
    row_of[order] = np.cumsum(starts) - 1
    parts, first = [], 0
    for block in blocks:
        if block.cells is not None:
            parts.append(_of_batch(block.cells, row_of[first : first + len(block.keys)]))
        first += len(block.keys)
    distinct = keys.take(pa.array(order[np.flatnonzero(starts)]))
    return CellChanges(distinct, joined(parts))


def _of_batch(batch: pa.RecordBatch, row_of: Integers) -> Cells:
    entry = np.zeros(batch.num_rows, _ENTRY)
    for name in ("type", "family", "column", "timestamp", "sequence"):
        entry[name] = batch.column(name).to_numpy(zero_copy_only=False)
    operation = batch.column("operation").to_numpy(zero_copy_only=False)
    return Cells(row_of[operation], entry, batch.column("value").fill_null(b""))


def joined(parts: Sequence[Cells]) -> Cells:
    return Cells(
        np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)]),
        np.concatenate([np.zeros(0, _ENTRY), *(part.entry for part in parts)]),
        combined([part.value for part in parts]),
    )


def merge(before: pa.BinaryArray, cells: Cells) -> pa.BinaryArray:
    """Records after cells were merged into records before (NULL: none); rows of the cells are
    numbers of records.
    """
    old, applied = decode_records(before)
    news = cells.take((cells["sequence"] == 0) | (cells["sequence"] > applied[cells.row]))
    last = applied.copy()
    np.maximum.at(last, news.row, news["sequence"])
    return encode_records(_normal(joined([old, news])), last)


def _normal(cells: Cells) -> Cells:
    """What is worth keeping, in one order: so that equal contents are equal records."""
    markers = _markers(cells.take(cells["type"] != PUT))
    puts = _visible(cells.take(cells["type"] == PUT), markers)
    puts = puts.take(_rank_in_column(puts) < VERSIONS)
    both = joined([markers, puts])
    return both.take(np.argsort(both.row, kind="stable"))


def _markers(cells: Cells) -> Cells:
    """The markers that still say something, of each kind in order.

    Of those that hide everything up to a time stamp the latest; those of single versions unless one
    of these hides the version anyway.
    """
    if not len(cells):
        return cells
    newest_first = (-cells["timestamp"], cells["column"], cells["family"], cells["type"], cells.row)
    ordered = cells.take(np.lexsort(newest_first))
    is_range = np.isin(ordered["type"], (DELETE_FAMILY, DELETE_COLUMN))
    same = (
        (ordered.row[1:] == ordered.row[:-1])
        & (ordered["type"][1:] == ordered["type"][:-1])
        & (ordered["family"][1:] == ordered["family"][:-1])
        & (ordered["column"][1:] == ordered["column"][:-1])
    )
    again = same & (is_range[1:] | (ordered["timestamp"][1:] == ordered["timestamp"][:-1]))
    return ordered.take(np.concatenate([[True], ~again]))


def _visible(puts: Cells, markers: Cells) -> Cells:
    """The puts that no marker hides."""
    if not len(markers):
        return puts
    hidden = np.zeros(len(puts), bool)
    for kind, place in ((DELETE_FAMILY, "family"), (DELETE_COLUMN, "column")):
        ranges = markers.take(markers["type"] == kind)
        if len(ranges):
            hidden |= puts["timestamp"] <= _latest(puts, ranges, place)
    for kind, place in ((DELETE_FAMILY_VERSION, "family"), (DELETE, "column")):
        single = markers.take(markers["type"] == kind)
        if len(single):
            hidden |= _is_marked(puts, single, place)
    return puts.take(~hidden)


def _latest(puts: Cells, ranges: Cells, place: str) -> Integers:
    """For each put the time stamp up to which its column or family is hidden."""
    wanted, known = _pairs(puts, place), _pairs(ranges, place)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    found = order[at]
    latest: Integers = np.where(
        known[found] == wanted, ranges["timestamp"][found], np.iinfo(np.int64).min
    )
    return latest


def _pairs(cells: Cells, place: str) -> Integers:
    """Row and column, or row and family, as one number."""
    pairs: Integers = cells.row * 65_536 + cells[place]
    return pairs


def _is_marked(puts: Cells, single: Cells, place: str) -> Mask:
    """Whether a marker has the place and the time stamp of a put."""
    marks = set(zip(_pairs(single, place).tolist(), single["timestamp"].tolist(), strict=True))
    candidates = np.flatnonzero(np.isin(_pairs(puts, place), _pairs(single, place)))
    marked = np.zeros(len(puts), bool)
    pairs, times = _pairs(puts, place)[candidates], puts["timestamp"][candidates]
    marked[candidates] = [
        pair in marks for pair in zip(pairs.tolist(), times.tolist(), strict=True)
    ]
    return marked


def _rank_in_column(puts: Cells) -> Integers:
    """How many puts of the same column have a later time stamp; far away for those that another one
    with the same time stamp replaces.
    """
    order = np.lexsort((-puts["sequence"], -puts["timestamp"], puts["column"], puts.row))
    row, column, timestamp = puts.row[order], puts["column"][order], puts["timestamp"][order]
    is_first = np.ones(len(order), bool)  # of its column
    is_first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    is_other = is_first.copy()  # another time stamp than the one before
    is_other[1:] |= timestamp[1:] != timestamp[:-1]
    count = np.cumsum(is_other)
    start = count[np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.where(is_other, count - start, VERSIONS)
    return ranks


def encode_records(cells: Cells, applied: Integers) -> pa.BinaryArray:
    """Records of cells in the order of their rows; `applied` has the sequence id of every row."""
    counts = np.bincount(cells.row, minlength=len(applied))
    header = np.zeros(len(applied), _HEADER)
    header["sequence"], header["entries"] = applied, counts
    entries = cells.entry.copy()
    entries["length"] = pc.binary_length(cells.value).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    parts = [_join_rows(fixed_binary(entries), ends), _join_rows(cells.value, ends)]
    return weave([fixed_binary(header), *parts], len(applied))


def _join_rows(pieces: pa.BinaryArray, ends: npt.NDArray[np.int32]) -> pa.BinaryArray:
    """Pieces of each row, one behind the other."""
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), pieces), b"")


def decode_records(records: pa.BinaryArray) -> tuple[Cells, Integers]:
    """The cells of records (NULL: none), and the sequence ids up to which they were applied."""
    packed = unpack(records, _HEADER_SIZE + _ENTRY_SIZE)
    present = records.is_valid().to_numpy(zero_copy_only=False)
    header = packed.gather(packed.starts, np.dtype(_HEADER))
    counts = np.where(present, header["entries"], 0).astype(np.int64)
    values_at = packed.starts + _HEADER_SIZE + counts * _ENTRY_SIZE  # behind the entries
    if (values_at > packed.ends)[present].any():
        raise Damaged("a record of cells has fewer bytes than it says")
    row = np.repeat(np.arange(len(records)), counts)
    firsts = (np.cumsum(counts) - counts)[row]  # for every cell the first one of its record
    at = packed.starts[row] + _HEADER_SIZE + (np.arange(len(row)) - firsts) * _ENTRY_SIZE
    entries = packed.gather(at, np.dtype(_ENTRY))
    values = _values(packed, entries["length"].astype(np.int64), values_at[row], firsts)
    applied: Integers = np.where(present, header["sequence"], 0).astype(np.int64)
    return Cells(row, entries, values), applied


def _values(packed: Packed, lengths: Integers, begins: Integers, firsts: Integers) -> pa.Array:
    """Values that stand one behind the other from where those of their record begin."""
    before = np.cumsum(lengths) - lengths
    starts = begins + before - before[firsts]
    return packed.slices(starts, starts + lengths, None, pa.binary())


def records_of(keys: pa.BinaryArray, scanned: KeyedCells) -> pa.BinaryArray:
    """Records of cells that were scanned, aligned with `keys`; NULL where nothing was found."""
    found, batch = scanned
    made = merge(pa.nulls(len(found), pa.binary()), _of_batch(batch, np.arange(len(found))))
    return made.take(pc.index_in(keys, found))


def shown_cells(records: pa.BinaryArray) -> pa.BinaryArray:
    """What records show, with time stamps: equal bytes show the same, now and after any later
    change. NULL where there is no record.
    """
    cells, applied = decode_records(records)
    puts = cells.take(cells["type"] == PUT)
    newest = puts.take(_rank_in_column(puts) == 0)
    newest = newest.take(np.lexsort((newest["column"], newest.row)))
    newest.entry["sequence"] = 0
    shown = encode_records(newest, np.zeros_like(applied))
    return pc.if_else(records.is_valid(), shown, pa.scalar(None, pa.binary()))


def images(mapping: Mapping, records: pa.BinaryArray) -> pa.BinaryArray:
    """The rows that records stand for, NULL where there is none: no mapped column has a value."""
    return read_records(mapping, records)[0]


def read_records(mapping: Mapping, records: pa.BinaryArray) -> tuple[pa.BinaryArray, list[Codes]]:
    """The same, and what is wrong with every column of every row (`read_cells`)."""
    cells, _ = decode_records(records)
    puts = cells.take(cells["type"] == PUT)
    newest = puts.take(_rank_in_column(puts) == 0)
    columns = []
    for number in range(len(mapping.columns)):
        mine = newest.take(newest["column"] == number)
        place = np.full(len(records), -1, np.int64)
        place[mine.row] = np.arange(len(mine))
        columns.append(mine.value.take(pa.array(place, mask=place < 0)))
    return read_cells(mapping, columns, len(records))
