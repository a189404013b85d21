"""The order of many byte strings at once: as numbers, where 64 bits tell them apart.

The keys of a batch are much alike: the same tags, the same leading digits. A byte that is the same
in all of them tells nothing, and one that takes r values needs log2(r) bits. What is left mostly
fits a word, and numpy sorts words thirty times as fast as Arrow sorts bytes (470,000 keys of 10
bytes: 5 ms and 140 ms; making the words takes 14). Nothing of this is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from belvedere.encoding.binaries import data_of, equal_length, offsets_of
from belvedere.libraries import np, npt, pa, pc

Ints: TypeAlias = "npt.NDArray[np.int64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"

_WORD = 64
_LONGEST = 64  # bytes; longer strings would make large matrices, and rarely fit a word
_FEW = 500  # below, Arrow is faster


@dataclass(frozen=True, slots=True)
class Words:
    """Numbers below 2**bits that are ordered, and equal, as what they stand for."""

    numbers: npt.NDArray[np.uint64]
    bits: int

    @classmethod
    def of_numbers(cls, numbers: Ints | Mask) -> Words:
        """Of numbers that are not negative."""
        return cls(numbers.astype(np.uint64), int(numbers.max(initial=0)).bit_length())

    @classmethod
    def of(cls, values: pa.BinaryArray) -> Words | None:
        """Of byte strings; None if a word is too short for them, or one is NULL."""
        matrix = None if values.null_count else _by_position(values)
        if matrix is None:
            return None
        least = matrix.min(axis=1, initial=0xFF)
        widths = (
            [int(span).bit_length() for span in matrix.max(axis=1, initial=0) - least]
            if len(values)
            else []
        )
        if sum(widths) > _WORD:
            return None
        numbers = np.zeros(len(values), np.uint64)
        for column, low, width in zip(matrix, least, widths, strict=False):
            if width:
                numbers <<= np.uint64(width)
                numbers |= column - low
        return cls(numbers, sum(widths))

    def then(self, other: Words | None) -> Words | None:
        """Of pairs, ordered by this one first; None if they do not fit a word."""
        if other is None or self.bits + other.bits > _WORD:
            return None
        if not self.bits or not other.bits:  # a shift by the whole width is not defined
            return other if other.bits else self
        return Words(self.numbers << np.uint64(other.bits) | other.numbers, self.bits + other.bits)

    def order(self) -> Ints:
        """The stable permutation that sorts."""
        count = len(self.numbers)
        place = max(count - 1, 0).bit_length()
        if self.bits + place > _WORD:
            return np.argsort(self.numbers, kind="stable")
        # a third of argsort's time
        mixed = np.sort(self.numbers << np.uint64(place) | np.arange(count, dtype=np.uint64))
        return (mixed & np.uint64((1 << place) - 1)).astype(np.int64)


def stable_order(values: pa.BinaryArray) -> Ints:
    """The stable permutation that sorts byte strings."""
    words = Words.of(values) if len(values) >= _FEW else None
    return np.asarray(pc.sort_indices(values), np.int64) if words is None else words.order()


def order_by(*numbers: Ints | Mask) -> Ints:
    """The stable permutation that sorts by these columns, the first one first; their numbers are
    not negative.
    """
    words: Words | None = Words.of_numbers(numbers[0])
    for column in numbers[1:]:
        words = None if words is None else words.then(Words.of_numbers(column))
    return np.lexsort(numbers[::-1]) if words is None else words.order()


def run_starts(values: pa.BinaryArray) -> Mask:
    """Where a run of equal values starts."""
    differs = pc.not_equal(values.slice(1), values.slice(0, max(len(values) - 1, 0)))
    return np.append(True, differs.to_numpy(zero_copy_only=False))[: len(values)]


def distinct(values: pa.BinaryArray) -> tuple[pa.BinaryArray, Ints, Ints]:
    """The different values in order, and where each of them stands first and last."""
    words = Words.of(values) if len(values) >= _FEW else None
    if words is None:
        order = stable_order(values)
        is_first = run_starts(values.take(pa.array(order)))
    else:
        order = words.order()
        numbers = words.numbers.take(order)
        is_first = np.append(True, numbers[1:] != numbers[:-1])
    starts = np.flatnonzero(is_first)
    first = order.take(starts)
    return values.take(pa.array(first)), first, order.take(run_ends(starts, len(order)))


def run_ends(first: Ints, count: int) -> Ints:
    """Where runs end that start at `first`, of `count` values."""
    return np.append(first[1:], count)[: len(first)] - 1


def _by_position(values: pa.BinaryArray) -> npt.NDArray[np.uint8] | None:
    """The bytes at position 0, 1, ... of every string, in rows; zeros behind a shorter one, and in
    a last row the lengths.
    """
    length = equal_length(values)
    if length is not None:
        return (
            np.ascontiguousarray(data_of(values).reshape(len(values), length).T)
            if length <= _LONGEST
            else None
        )
    lengths = np.diff(offsets_of(values))
    longest = int(lengths.max(initial=0))
    if longest > _LONGEST:
        return None
    padded = np.zeros((len(values), longest + 1), np.uint8)
    padded[:, :longest][np.arange(longest) < lengths[:, None]] = data_of(values)
    padded[:, longest] = lengths
    return np.ascontiguousarray(padded.T)
