"""Sections: sorted records of one table, never changed, in a stretch of a file.

    head     magic, table, rows, places of the hash, bytes that all keys begin with: u32 each;
             bytes of the block u64; checksum of all that follows the head u32; checksum of the head
             before this u32
    block    keys, sorted, each once, and values (`blocks.py`); NULL: the record was deleted
    words    u64 for each key: its eight bytes behind those that all begin with, zeros behind a
             shorter one
    hash     u32 each, open addressing, at most half full: 12 bits of the key's hash, then its row
             counted from 1; 0 is free

A search looks at words, and at whole keys only where words are equal. A key is found by its hash.
Who opens a section reads all of it once, to compare the checksum: what is read later is what was
written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from struct import Struct
from typing import Any, Final, TypeAlias
from zlib import crc32

from belvedere.encoding.binaries import Packed, offsets_of, unpack
from belvedere.encoding.slots import slot_hash
from belvedere.errors import Damaged
from belvedere.libraries import np, npt, pa, pc
from belvedere.stores.embedded import blocks

Ints: TypeAlias = "npt.NDArray[np.int64]"
Hashes: TypeAlias = "npt.NDArray[np.uint32]"
Words: TypeAlias = "npt.NDArray[np.uint64]"
Source: TypeAlias = "mmap | bytes"
Get = Callable[[bytes, int], Any]  # of a key and its hash

MOST_ROWS = 1 << 20  # a row, counted from 1, has 20 bits in the hash
_MAGIC = 0x31525642
_HEAD, _CHECK = Struct("<IIIIIQI"), Struct("<I")
HEAD_SIZE = 40  # with the checksums, and aligned
_ROW_BITS = 20
_ROW_MASK = (1 << _ROW_BITS) - 1
_MIX = 0x9E3779B1  # spreads hashes of one slot, whose last bits are alike, over all places
_WORD = 8
_FEW = 64  # keys that Python works on one by one in less time
MISSING: Final = object()  # a section says nothing of a key


def encode(
    table: int, keys: pa.BinaryArray, values: pa.BinaryArray, stays: bool = True
) -> list[Any]:
    """The bytes of a section, in parts that are written one behind the other. One that does not
    stay longer than this process needs no checksum.
    """
    common = _shared(keys)
    places = _hash_places(slot_hash(keys)) if len(keys) else np.zeros(0, np.uint32)
    block = blocks.encode(table, 0.0, (keys, values))
    body = [block, words_of(keys, common).tobytes(), places.tobytes()]
    checksum = 0
    for part in body if stays else ():
        checksum = crc32(part, checksum)
    head = _HEAD.pack(_MAGIC, table, len(keys), len(places), common, len(block), checksum)
    head += _CHECK.pack(crc32(head))
    return [head.ljust(HEAD_SIZE, b"\0"), *body, bytes(-sum(map(len, body)) % 8)]


def _shared(keys: pa.BinaryArray) -> int:
    """How many bytes all keys begin with: those of the first and the last one."""
    if not len(keys):
        return 0
    return common_length(keys[0].as_py(), keys[len(keys) - 1].as_py())


def common_length(one: bytes, other: bytes) -> int:
    """How many bytes two keys begin with that are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # the first `low` are the same, more than `high` are not
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def words_of(keys: pa.BinaryArray, skip: int) -> Words:
    """Eight bytes of each key from `skip` on as a number; zeros behind a shorter one."""
    if len(keys) <= _FEW:
        return np.array([word_of(key, skip) for key in keys.to_pylist()], np.uint64)
    packed: Packed = unpack(keys, reach=skip + _WORD)
    words = packed.gather(packed.starts + skip, ">u8").astype(np.uint64)
    left = packed.ends - packed.starts - skip
    if len(left) and left.min() < _WORD:
        short = np.flatnonzero(left < _WORD)
        bits = (8 * (_WORD - np.maximum(left[short], 0))).astype(np.uint64)
        kept = words[short] >> np.minimum(bits, np.uint64(63)) << np.minimum(bits, np.uint64(63))
        words[short] = np.where(bits == 64, np.uint64(0), kept)
    return words


def word_of(key: bytes, skip: int) -> int:
    return int.from_bytes(key[skip : skip + _WORD].ljust(_WORD, b"\0"), "big")


def _hash_places(hashes: Hashes) -> Hashes:
    """The hash of so many rows: each in the first free place from its own on."""
    count = 4
    while count < 2 * len(hashes):
        count *= 2
    if len(hashes) <= _FEW:
        return _few_places(hashes.tolist(), count)
    places = np.zeros(count, np.uint32)
    rows = np.arange(1, len(hashes) + 1, dtype=np.uint32)
    entries = hashes >> np.uint32(_ROW_BITS) << np.uint32(_ROW_BITS) | rows
    at, mask = _place(hashes, count), np.uint32(count - 1)
    while len(entries):
        is_free = places[at] == 0
        wanted, put = at[is_free], entries[is_free]
        places[wanted] = put  # of several that want one place, one gets it
        lost = places[wanted] != put
        at = np.concatenate([at[~is_free], wanted[lost]]) + np.uint32(1) & mask
        entries = np.concatenate([entries[~is_free], put[lost]])
    return places


def _few_places(hashes: list[int], count: int) -> Hashes:
    """The same, one by one."""
    places, shift = [0] * count, 33 - count.bit_length()
    for row, hashed in enumerate(hashes, 1):
        at = (hashed * _MIX & 0xFFFFFFFF) >> shift
        while places[at]:
            at = at + 1 & count - 1
        places[at] = hashed >> _ROW_BITS << _ROW_BITS | row
    return np.array(places, np.uint32)


def _place(hashes: Hashes, count: int) -> Hashes:
    shift = np.uint32(32 - (count.bit_length() - 1))
    return hashes * np.uint32(_MIX) >> shift


class Section:
    """A section that is mapped, or in memory.

    Arrow and numpy are not needed to get one key, which is all that many a process does.
    """

    def __init__(
        self, source: Source, base: int, size: int, where: str, stays: bool = True
    ) -> None:
        """In `source` from `base` on; `where` names it in errors."""
        data = memoryview(source)[base : base + size]
        head = _Head.read(data, where)
        if head.size > len(data):
            raise Damaged(f"{where} is cut off")
        if stays and crc32(data[HEAD_SIZE : head.size]) != head.checksum:
            raise Damaged(f"{where} is damaged: its checksum is not that of its bytes")
        self._data, self._head = data, head
        self.table, self.rows = head.table, head.rows
        self._one = _OneRecord(source, base, head)
        self._common = self._one.common
        self.get_one, self.lower = self._one.get, self._one.lower

    @cached_property
    def _columns(self) -> list[pa.BinaryArray]:
        return blocks.columns_at(self._data, HEAD_SIZE)

    @property
    def keys(self) -> pa.BinaryArray:
        return self._columns[0]

    @property
    def values(self) -> pa.BinaryArray:
        return self._columns[1]

    @cached_property
    def _words(self) -> Words:
        return np.frombuffer(self._data, np.uint64, self.rows, self._head.words_at)

    @cached_property
    def _places(self) -> Hashes:
        return np.frombuffer(self._data, np.uint32, self._head.places, self._head.places_at)

    def record(self, row: int) -> tuple[bytes, bytes | None]:
        return self._one.key(row), self._one.value(row)

    def find(self, keys: pa.BinaryArray, hashes: Hashes, wanted: Ints) -> Ints:
        """The rows of the wanted ones of some keys, -1 where there is none."""
        found = np.full(len(wanted), -1, np.int64)
        if not self.rows:
            return found
        places, hashes = self._places, hashes[wanted]
        left, at = np.arange(len(wanted)), _place(hashes, len(places))
        marks = _marks(hashes)
        while len(left):  # numbers are taken by their places: by masks it takes twice as long
            entries = places.take(at)
            going_on = entries != 0
            candidates = np.flatnonzero((_marks(entries) == marks) & going_on)
            if len(candidates):
                rows, asked = _rows_in(entries.take(candidates)), left.take(candidates)
                same = _equal(self.keys, rows, keys, wanted.take(asked))
                found[asked[same]] = rows[same]
                going_on[candidates[same]] = False
            kept = np.flatnonzero(going_on)
            left, marks = left.take(kept), marks.take(kept)
            at = at.take(kept) + np.uint32(1) & np.uint32(len(places) - 1)
        return found

    def lowers(self, needles: pa.BinaryArray) -> Ints:
        """The first row at or behind each needle; `rows` if there is none."""
        if not self.rows:
            return np.zeros(len(needles), np.int64)
        wanted = words_of(needles, len(self._common))
        low = np.searchsorted(self._words, wanted, "left").astype(np.int64)
        high = np.searchsorted(self._words, wanted, "right").astype(np.int64)
        if self._common:
            heads = pc.binary_slice(needles, 0, len(self._common))
            below = pc.less(heads, self._common).to_numpy(zero_copy_only=False)
            above = pc.greater(heads, self._common).to_numpy(zero_copy_only=False)
            low[below], high[below] = 0, 0
            low[above], high[above] = self.rows, self.rows
        return self._bisect(needles, low, high)

    def _bisect(self, needles: pa.BinaryArray, low: Ints, high: Ints) -> Ints:
        """Where words are equal, whole keys are compared, for all needles at once."""
        open_ones = np.flatnonzero(low < high)
        while len(open_ones):
            middle = (low[open_ones] + high[open_ones]) // 2
            keys = self.keys.take(pa.array(middle))
            is_less = pc.less(keys, needles.take(pa.array(open_ones)))
            less = is_less.to_numpy(zero_copy_only=False)
            low[open_ones[less]] = middle[less] + 1
            high[open_ones[~less]] = middle[~less]
            open_ones = open_ones[low[open_ones] < high[open_ones]]
        return low

    def bytes_until(self, start: int, stop: int) -> Ints:
        """Bytes of keys and values from a row on, up to and with each of the rows behind it."""
        keys, values = offsets_of(self.keys), offsets_of(self.values)
        size: Ints = keys[start + 1 : stop + 1].astype(np.int64) + values[start + 1 : stop + 1]
        return size - (int(keys[start]) + int(values[start]))


def _marks(hashes: Hashes) -> Hashes:
    """What stands above the row in an entry."""
    return hashes >> np.uint32(_ROW_BITS)


def _rows_in(entries: Hashes) -> Ints:
    return (entries & np.uint32(_ROW_MASK)).astype(np.int64) - 1


class _OneRecord:
    """One record at a time, as Python finds it fastest: plain numbers and views.

    `source` is what the section is in, from `base` on: slices of it are bytes.
    """

    __slots__ = ("_keys", "_keys_at", "_source", "_valid_at", "_values", "_values_at", "_words",
                 "common", "get")  # fmt: skip

    def __init__(self, source: Source, base: int, head: _Head) -> None:
        data, rows = memoryview(source)[base:], head.rows
        (key_offsets, _, keys_at, _), (value_offsets, valid_at, values_at, _) = blocks.layout_at(
            data, HEAD_SIZE
        )
        self._source = source
        self._words = data[head.words_at : head.words_at + _WORD * rows].cast("Q")
        self._keys = data[key_offsets : key_offsets + 4 * (rows + 1)].cast("i")
        self._values = data[value_offsets : value_offsets + 4 * (rows + 1)].cast("i")
        self._keys_at, self._values_at = base + keys_at, base + values_at
        self._valid_at = base + valid_at if valid_at else 0
        self.common = self.key(0)[: head.common] if rows else b""
        places = data[head.places_at : head.places_at + 4 * head.places].cast("I")
        self.get = self._getter(places)

    def _getter(self, places: memoryview) -> Get:
        """The value of a key; None if it was deleted, MISSING if nothing is said of it.

        A function with its own names: a point read spends most of its time here.
        """
        source, keys, values = self._source, self._keys, self._values
        keys_at, values_at, valid_at = self._keys_at, self._values_at, self._valid_at
        last, shift = len(places) - 1, 33 - len(places).bit_length()

        def get(key: bytes, hashed: int) -> Any:
            at = (hashed * _MIX & 0xFFFFFFFF) >> shift
            mark = hashed >> _ROW_BITS
            while entry := places[at]:
                if entry >> _ROW_BITS == mark:
                    row = (entry & _ROW_MASK) - 1
                    if source[keys_at + keys[row] : keys_at + keys[row + 1]] == key:
                        if valid_at and not source[valid_at + (row >> 3)] >> (row & 7) & 1:
                            return None
                        return source[values_at + values[row] : values_at + values[row + 1]]
                at = at + 1 & last
            return MISSING

        return get

    def lower(self, key: bytes) -> int:
        """The first row at or behind a key."""
        common, words = self.common, self._words
        size = len(common)
        if key[:size] != common:  # also if it is shorter
            return 0 if key[:size] < common else len(words)
        word = word_of(key, size)
        low = bisect_left(words, word)
        high = bisect_right(words, word, low)
        while low < high:
            middle = (low + high) // 2
            if self.key(middle) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def key(self, row: int) -> bytes:
        start = self._keys_at
        return self._source[start + self._keys[row] : start + self._keys[row + 1]]

    def value(self, row: int) -> bytes | None:
        valid, start = self._valid_at, self._values_at
        if valid and not self._source[valid + (row >> 3)] >> (row & 7) & 1:
            return None
        return self._source[start + self._values[row] : start + self._values[row + 1]]


def _equal(
    keys: pa.BinaryArray, rows: Ints, others: pa.BinaryArray, numbers: Ints
) -> npt.NDArray[np.bool_]:
    same = pc.equal(keys.take(pa.array(rows)), others.take(pa.array(numbers)))
    found: npt.NDArray[np.bool_] = same.to_numpy(zero_copy_only=False)
    return found


@dataclass(frozen=True, slots=True)
class _Head:
    table: int
    rows: int
    places: int
    common: int
    block: int
    checksum: int

    @classmethod
    def read(cls, data: memoryview, where: str) -> _Head:
        if len(data) < HEAD_SIZE:
            raise Damaged(f"{where} is cut off")
        magic, *numbers = _HEAD.unpack_from(data)
        (checksum,) = _CHECK.unpack_from(data, _HEAD.size)
        if magic != _MAGIC or checksum != crc32(data[: _HEAD.size]):
            raise Damaged(f"{where} is damaged: its head is not what was written")
        return cls(*numbers)

    @property
    def words_at(self) -> int:
        return HEAD_SIZE + self.block

    @property
    def places_at(self) -> int:
        return self.words_at + _WORD * self.rows

    @property
    def size(self) -> int:
        return self.places_at + 4 * self.places
