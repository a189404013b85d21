"""Arrow binary arrays as numpy bytes, and back, without touching rows one by one.

An array of n values is one run of bytes and n + 1 rising offsets. Three consequences are used:

    fixed width     n records of w bytes are the binary array with offsets 0, w, 2w, ...
    any word        the word at any byte is an element of the overlapping view with stride 1
    any slices      rising slices [s0, e0) [s1, e1) ... are the even elements of the binary array
                    with offsets s0, e0, s1, e1, ...: one `take` copies them out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from belvedere.errors import SchemaError
from belvedere.libraries import np, npt, pa, pc
from belvedere.types import SqlType

Numbers: TypeAlias = "npt.NDArray[Any]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"
Piece: TypeAlias = "pa.Array | bytes"


@dataclass(frozen=True, slots=True)
class Packed:
    """The values of a binary array: `data[starts[i]:ends[i]]`, and zero bytes after the last."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    def gather(self, at: npt.NDArray[np.int64], dtype: str | np.dtype[Any]) -> Numbers:
        """The words of a dtype that begin at bytes `at`; words near the end may run into the
        padding.
        """
        kind = np.dtype(dtype)
        # numpy copies opaque records 4 times faster
        element = kind if kind.names is None else np.dtype((np.void, kind.itemsize))
        words: Numbers = np.ndarray(
            (len(self.data) - kind.itemsize + 1,), element, self.data, 0, (1,)
        )
        return words[at].view(kind)

    def slices(
        self,
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        valid: Mask | None,
        kind: pa.DataType,
    ) -> pa.Array:
        """`data[starts[i]:ends[i]]` as strings or binaries, NULL where not valid; starts and ends
        must rise together.
        """
        count = len(starts)
        if count == 0:
            return pa.array([], kind)
        # Arrow would read what is not there
        if (ends < starts).any() or ends.max() > len(self.data):
            raise ValueError("a length does not fit the bytes that are there")
        offsets = np.empty((count, 2), np.int32)
        offsets[:, 0], offsets[:, 1] = starts, ends
        gaps = pa.Array.from_buffers(
            kind, 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )
        even = pa.array(
            np.arange(0, 2 * count, 2, dtype=np.int32), mask=None if valid is None else ~valid
        )
        return gaps.take(even)


def checked_text(array: pa.Array) -> pa.Array:
    """The array, if all its strings are UTF-8, which Arrow takes on trust."""
    if pa.types.is_string(array.type):
        array.validate(full=True)
    return array


def one_array(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The column in one chunk and of exactly this type."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        raise SchemaError("a column of one batch holds more than 2 GiB: use smaller batches")
    if array.type == kind:
        return array
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise SchemaError(
            f"a column of type {array.type} does not fit {kind}: cast the column first"
        ) from cause


def arrays_of(
    columns: Sequence[pa.Array | pa.ChunkedArray], kinds: Sequence[SqlType]
) -> list[pa.Array]:
    if len(columns) != len(kinds):
        raise SchemaError(
            f"there are {len(columns)} columns for {len(kinds)} types: pass one column for each"
            " type"
        )
    return [one_array(column, kind.arrow) for column, kind in zip(columns, kinds, strict=True)]


def row_count(arrays: Sequence[pa.Array], rows: int | None) -> int:
    """How many rows the columns have; without columns only the caller knows."""
    counts = {len(array) for array in arrays} | ({rows} if rows is not None else set())
    if len(counts) != 1:
        raise SchemaError(
            f"the columns have {sorted(counts)} rows: pass columns of one length, or `rows` when"
            " there are no columns"
        )
    return counts.pop()


def unpack(values: pa.Array | pa.ChunkedArray, reach: int) -> Packed:
    """The values with `reach` zero bytes after the last, for words that begin
    at or before its end.
    """
    array = one_array(values, pa.binary())
    offsets = offsets_of(array).astype(np.int64)
    size = int(offsets[-1] - offsets[0])
    data = np.empty(size + reach, np.uint8)
    data[:size], data[size:] = data_of(array), 0
    offsets -= offsets[0]
    return Packed(data, offsets[:-1], offsets[1:])


def offsets_of(array: pa.Array) -> npt.NDArray[np.int32]:
    """The len + 1 offsets of a string or binary array, which may be a slice."""
    if len(array) == 0:
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]


def data_of(array: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of all values of a string or binary array, which may be a slice."""
    offsets, data = offsets_of(array), array.buffers()[2]
    return (
        np.zeros(0, np.uint8)
        if data is None
        else np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    )


def equal_length(array: pa.Array) -> int | None:
    """How long every value of a null-free binary array is; None when they differ."""
    offsets = offsets_of(array)
    if len(array) == 0 or array.null_count:
        return None
    length = int(offsets[1] - offsets[0])
    # The sum is looked at first: it is wrong for nearly all arrays with values of other lengths.
    if (
        int(offsets[-1] - offsets[0]) != length * len(array)
        or not (np.diff(offsets) == length).all()
    ):
        return None
    return length


def as_binary(array: pa.Array) -> pa.Array:
    return array if pa.types.is_binary(array.type) else array.view(pa.binary())


def has_zero_byte(array: pa.Array) -> bool:
    data = data_of(array)
    return bool(data.size and data.min() == 0)


def fixed_binary(records: Numbers, valid: Mask | None = None) -> pa.Array:
    """Records of one structured dtype as binaries, NULL where not valid."""
    count, width = len(records), records.dtype.itemsize
    if count * width > np.iinfo(np.int32).max:
        raise SchemaError(
            f"{count} rows of {width} bytes do not fit one batch of 2 GiB: use smaller batches"
        )
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    bits = validity(valid)
    return pa.Array.from_buffers(
        pa.binary(),
        count,
        [bits, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(records))],
    )


def validity(valid: Mask | None) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def valid_mask(array: pa.Array) -> Mask | None:
    """Which values are not NULL; None when all are."""
    if array.null_count == 0:
        return None
    mask: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def weave(pieces: Sequence[Piece], rows: int) -> pa.Array:
    """Row by row the concatenation of the pieces; a piece of bytes is the same in every row."""
    merged = _merge_constants(pieces)
    if not any(isinstance(piece, pa.Array) for piece in merged):
        return pa.repeat(pa.scalar(b"".join(merged), pa.binary()), rows)
    if len(merged) == 1:
        return merged[0]
    lengths = [len(piece) if isinstance(piece, bytes) else equal_length(piece) for piece in merged]
    if None not in lengths and any(lengths):
        return _weave_equal(merged, lengths, rows)
    try:
        return pc.binary_join_element_wise(
            *(pa.scalar(p) if isinstance(p, bytes) else p for p in merged), b""
        )
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as cause:
        raise SchemaError(
            f"{rows} rows do not fit one batch of 2 GiB: use smaller batches"
        ) from cause


def _weave_equal(pieces: list[Any], lengths: list[Any], rows: int) -> pa.Array:
    """Pieces that are as long in every row: the rows are a matrix.

    Five times faster than the join.
    """
    matrix, at = np.empty((rows, sum(lengths)), np.uint8), 0
    for piece, length in zip(pieces, lengths, strict=True):
        matrix[:, at : at + length] = (
            np.frombuffer(piece, np.uint8)
            if isinstance(piece, bytes)
            else data_of(piece).reshape(rows, length)
        )
        at += length
    return fixed_binary(matrix.view(f"V{matrix.shape[1]}").reshape(rows))


def _merge_constants(pieces: Sequence[Piece]) -> list[Any]:
    merged: list[Any] = []
    for piece in pieces:
        if merged and isinstance(piece, bytes) and isinstance(merged[-1], bytes):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged
