"""Many rows of bytes as columns of texts, without a loop over rows.

Rows lie one behind the other in a buffer. Field i of all rows is read at once: where it begins
follows from where field i - 1 ended. So the cost is a few passes of NumPy per column.

    log       kind 1 byte: t text, n NULL, u unchanged; of a text its length, 4 bytes, and the text
    copy      length 4 bytes, -1 for NULL, and the text
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.libraries import np, npt, pa

Places = Any  # an array of 64-bit numbers
_TEXT, _NULL, _UNCHANGED = b"tnu"
_PADDING = bytes(8)
# Texts that are longer on average are cut out one by one.
_LONG = 200


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes of many messages, and a view that has the number of four bytes at every place."""

    data: bytes
    bytes: npt.NDArray[Any]
    numbers: npt.NDArray[Any]


def new_buffer(messages: Sequence[Any]) -> Buffer:
    data = b"".join([*messages, _PADDING])
    numbers = np.ndarray((len(data) - 3,), dtype=">i4", buffer=data, strides=(1,))
    return Buffer(data, np.frombuffer(data, dtype=np.uint8), numbers)


@dataclass(frozen=True, slots=True)
class Field:
    """One column of some rows: where its texts are; which rows have none."""

    starts: Places
    lengths: Places
    nulls: Any
    unchanged: Any


def log_fields(buffer: Buffer, places: Places, count: int) -> tuple[list[Field], Places]:
    """The columns of rows that begin at these places, and where the rows end."""
    found = []
    for _ in range(count):
        kinds = buffer.bytes[places]
        lengths = np.where(kinds == _TEXT, buffer.numbers[places + 1], 0).astype(np.int64)
        starts = places + 5
        found.append(Field(starts, lengths, kinds == _NULL, kinds == _UNCHANGED))
        places = np.where(kinds == _TEXT, starts + lengths, places + 1)
    return found, places


def copy_fields(buffer: Buffer, places: Places, count: int) -> list[Field]:
    found = []
    for _ in range(count):
        lengths = buffer.numbers[places].astype(np.int64)
        nulls = lengths < 0
        lengths = np.where(nulls, 0, lengths)
        starts = places + 4
        found.append(Field(starts, lengths, nulls, np.zeros(len(nulls), dtype=bool)))
        places = starts + lengths
    return found


def or_else(field: Field, other: Field) -> Field:
    """The column with the other one's texts where it is unchanged."""
    if not field.unchanged.any():
        return field
    choose = field.unchanged
    return Field(
        np.where(choose, other.starts, field.starts),
        np.where(choose, other.lengths, field.lengths),
        np.where(choose, other.nulls, field.nulls),
        choose & other.unchanged,
    )


def chosen(field: Field, rows: Any) -> Field:
    return Field(field.starts[rows], field.lengths[rows], field.nulls[rows], field.unchanged[rows])


def to_binary(buffer: Buffer, field: Field) -> pa.Array:
    """The texts as an Arrow array of bytes."""
    if int(field.lengths.sum()) > _LONG * len(field.lengths):
        return _cut_out(buffer, field)
    offsets = np.zeros(len(field.lengths) + 1, dtype=np.int64)
    np.cumsum(field.lengths, out=offsets[1:])
    shift = np.repeat(field.starts - offsets[:-1], field.lengths)
    data = buffer.bytes[shift + np.arange(offsets[-1])]
    validity = np.packbits(~field.nulls, bitorder="little") if field.nulls.any() else None
    buffers = [
        None if validity is None else pa.py_buffer(validity),
        pa.py_buffer(offsets.astype(np.int32)),
        pa.py_buffer(data),
    ]
    return pa.Array.from_buffers(pa.binary(), len(field.lengths), buffers)


def _cut_out(buffer: Buffer, field: Field) -> pa.Array:
    data = buffer.data
    ends = (field.starts + field.lengths).tolist()
    texts = [data[start:end] for start, end in zip(field.starts.tolist(), ends, strict=True)]
    return pa.array(texts, pa.binary(), mask=field.nulls)
