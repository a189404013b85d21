"""Merged records show what a row of cells shows, however its cells arrive: in epochs, again, or
beside a scan.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.changes.cells import (
    cell_changes,
    decode_records,
    encode_records,
    images,
    merge,
)
from belvedere.errors import Damaged
from belvedere.stores.base import DELETE, PUT, LogBlock, MappedColumn, MappedKey, Mapping
from belvedere.types import BIGINT, BINARY, STRING
from tests.cells import KINDS, Cell, batch_of, visible

# two families; the first has two columns
FAMILIES = (0, 0, 1)
MAPPING = Mapping(
    "t",
    MappedKey((STRING,)),
    (b"d", b"e"),
    tuple(MappedColumn(BINARY, family, b"%d" % i) for i, family in enumerate(FAMILIES)),
)
Operation = tuple[bytes, list[Cell]]  # a row, and what is done to it


@st.composite
def histories(draw: st.DrawFn, versions: int = 3) -> list[Operation]:
    """Operations on few rows, with few time stamps, so that they meet; three versions are what
    records keep.
    """
    history = []
    for sequence in range(1, draw(st.integers(0, 14)) + 1):
        row = draw(st.sampled_from([b"a", b"b", b"c"]))
        cells = draw(st.lists(_cells(sequence, versions), min_size=1, max_size=3))
        history.append((row, list({(c.column, c.type, c.timestamp): c for c in cells}.values())))
    return history


@st.composite
def _cells(draw: st.DrawFn, sequence: int, versions: int) -> Cell:
    column = draw(st.integers(0, 2))
    kind = draw(st.sampled_from((PUT, PUT, PUT, *KINDS)))
    whole = kind in (10, 14)
    value = draw(st.binary(max_size=3)) if kind == PUT else b""
    place = -1 if whole else column
    return Cell(FAMILIES[column], place, kind, draw(st.integers(1, versions)), sequence, value)


def _block(operations: list[Operation]) -> LogBlock:
    keys = pa.array([row for row, _ in operations], pa.binary())
    nulls = pa.nulls(len(keys), pa.binary())
    cells = batch_of([cells for _, cells in operations])
    return LogBlock("log", 0, 1, 0.0, keys, nulls, None, True, cells)


class _Delta:
    """The delta view: records by row, brought up to date epoch by epoch."""

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}

    def apply(self, epoch: list[Operation], blocks: int = 1) -> None:
        parts = [epoch[i::blocks] for i in range(blocks)]  # order within an epoch does not count
        changes = cell_changes([_block(part) for part in parts])
        before = [self.records.get(key) for key in changes.keys.to_pylist()]
        after = merge(pa.array(before, pa.binary()), changes.cells)
        self.records |= dict(zip(changes.keys.to_pylist(), after.to_pylist(), strict=True))

    def shown(self) -> dict[bytes, dict[int, bytes]]:
        rows = images(MAPPING, pa.array(self.records.values(), pa.binary())).to_pylist()
        found = {}
        for key, row in zip(self.records, rows, strict=True):
            if row is not None:
                values = MAPPING.row_codec.decode_one(row)
                found[key] = {i: v for i, v in enumerate(values) if v is not None}
        return found


def _shown(history: list[Operation]) -> dict[bytes, dict[int, bytes]]:
    rows = sorted({row for row, _ in history})
    found = {row: visible([c for r, cells in history if r == row for c in cells]) for row in rows}
    return {row: values for row, values in found.items() if values}


@given(histories(), st.data())
def test_epochs_show_what_the_row_shows(history: list[Operation], data: st.DataObject) -> None:
    delta, done = _Delta(), 0
    while done < len(history):
        end = data.draw(st.integers(done + 1, len(history)))
        # what was delivered before comes again, in part
        again = data.draw(st.integers(0, done))
        delta.apply(history[again:end], data.draw(st.integers(1, 3)))
        done = end
        assert delta.shown() == _shown(history[:done])


@given(histories(), st.data())
def test_a_scan_beside_the_log_makes_up_for_what_the_log_has_not(
    history: list[Operation], data: st.DataObject
) -> None:
    """Capture begins somewhere, a scan later; its cells stand anywhere in the log."""
    first = data.draw(st.integers(0, len(history)))
    seen = data.draw(st.integers(first, len(history)))
    scanned = [
        (row, [c._replace(sequence=0) for c in _raw(history[:seen], row)]) for row in _rows(history)
    ]
    log = history[first:]
    at = data.draw(st.integers(0, len(log)))
    log = [*log[:at], *(operation for operation in scanned if operation[1]), *log[at:]]
    delta, done = _Delta(), 0
    while done < len(log):
        end = data.draw(st.integers(done + 1, len(log)))
        delta.apply(log[done:end])
        done = end
    assert delta.shown() == _shown(history)


def _rows(history: list[Operation]) -> list[bytes]:
    return sorted({row for row, _ in history})


def _raw(history: list[Operation], row: bytes) -> list[Cell]:
    """What a raw scan gives: every put and marker once, of equal ones the last."""
    cells = [c for r, done in history if r == row for c in done]
    return list({(c.column, c.family, c.type, c.timestamp): c for c in cells}.values())


@st.composite
def _versions(draw: st.DrawFn) -> list[Operation]:
    """One cell: more versions than a record keeps are put, then some are deleted one by one."""
    puts = draw(st.permutations(range(1, 6)))
    gone = draw(st.lists(st.integers(1, 5), unique=True, min_size=1))
    steps = [(PUT, at, b"x") for at in puts] + [(DELETE, at, b"") for at in gone]
    return [
        (b"a", [Cell(0, 0, kind, at, i, value)]) for i, (kind, at, value) in enumerate(steps, 1)
    ]


@given(st.one_of(histories(6), _versions()), st.data())
def test_what_is_delivered_again_changes_nothing(
    history: list[Operation], data: st.DataObject
) -> None:
    """Also if more versions were put than records keep."""
    delta = _Delta()
    for operation in history:
        delta.apply([operation])
    records = dict(delta.records)
    delta.apply(history[data.draw(st.integers(0, len(history))) :])
    assert delta.records == records


def test_a_version_that_fell_out_of_a_record_does_not_come_back_when_it_is_delivered_again() -> (
    None
):
    """Four versions are put and a record keeps three; deletes make room for the first one again."""
    puts = [(b"a", [Cell(0, 0, PUT, at, at, b"%d" % at)]) for at in range(1, 5)]
    deletes = [(b"a", [Cell(0, 0, DELETE, at, at + 3)]) for at in (2, 3, 4)]
    delta = _Delta()
    for operation in [*puts, *deletes]:
        delta.apply([operation])
    assert delta.shown() == {}
    delta.apply(puts)
    assert delta.shown() == {}


@given(histories())
def test_equal_contents_are_equal_records(history: list[Operation]) -> None:
    one, other = _Delta(), _Delta()
    one.apply(history)
    for operation in history:
        other.apply([operation])
    assert one.records == other.records


@given(histories())
def test_records_come_back_as_they_went_in(history: list[Operation]) -> None:
    delta = _Delta()
    delta.apply(history)
    records = pa.array([*delta.records.values(), None], pa.binary())
    cells, applied = decode_records(records)
    assert encode_records(cells, applied).to_pylist()[:-1] == records.to_pylist()[:-1]


def test_a_record_that_ends_early_is_damaged() -> None:
    delta = _Delta()
    delta.apply([(b"a", [Cell(0, 0, PUT, 1, 1, b"value")])])
    with pytest.raises(Damaged):
        decode_records(pa.array([delta.records[b"a"][:20]], pa.binary()))


def test_a_cell_of_another_type_is_null() -> None:
    mapping = Mapping("t", MappedKey((STRING,)), (b"d",), (MappedColumn(BIGINT, 0, b"n"),))
    delta = _Delta()
    delta.apply([(b"a", [Cell(0, 0, PUT, 1, 1, b"12")])])
    row = images(mapping, pa.array([delta.records[b"a"]], pa.binary())).to_pylist()[0]
    assert mapping.row_codec.decode_one(row) == (None,)
