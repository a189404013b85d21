"""Records under many prefixes: one cursor over all of them, a batch at a time.

Cost: one seek per prefix, and few records read in vain. LMDB does not say where a prefix ends, so
records are taken in pieces of about as many as the prefix before had. What was read beyond the end
of a prefix often belongs to the next one, and is used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

from belvedere.libraries import np, npt, pa, pc
from belvedere.stores.embedded.environment import Transaction
from belvedere.stores.embedded.records import (
    CHUNK_BYTES,
    LAST,
    LONGEST,
    SLICE_END,
    Overlay,
    binary,
    next_piece,
    prefixed,
    read_chunk,
    seek,
)

# numbers of prefixes, keys, values
Found: TypeAlias = "tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]"

# records in a piece; more tuples at a time would keep the GC busy
_FEWEST, _FIRST, _MOST = 4, 16, 1024
_GROWTH = 8


class Walk:
    """Where the reading stands: before `low`, under prefix number `at`, of which `taken` records
    have been given out.

    It is a place between keys, not a cursor: other attempts may commit between two batches, and
    each batch has its overlay.
    """

    def __init__(self, table: int, prefixes: pa.BinaryArray, limit: int | None) -> None:
        self._prefixes: list[bytes] = prefixed(table, prefixes).to_pylist()
        self._limit = SLICE_END if limit is None else limit
        self._size = min(_FIRST, max(self._limit, 1))
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._runs: list[tuple[int, int]] = []
        self._room = CHUNK_BYTES
        self._at, self._taken = -1, 0
        self._low = self._end = b""
        self._next_prefix()

    @property
    def done(self) -> bool:
        return self._at == len(self._prefixes)

    def read(self, transaction: Transaction, count: int, overlay: Overlay | None) -> Found:
        """The next `count` records, fewer only if there are no more or if they are large."""
        self._keys, self._values, self._runs, self._room = [], [], [], CHUNK_BYTES
        with transaction.cursor() as cursor:
            while not self.done and len(self._keys) < count and self._room > 0:
                if overlay is not None:
                    self._merge(transaction, count, overlay)
                elif seek(cursor, self._low):
                    self._stretch(cursor.iternext(), count)
                else:
                    self._at = len(self._prefixes)
        runs = np.array(self._runs, np.int64).reshape(-1, 2)
        return (
            np.repeat(runs[:, 0], runs[:, 1]),
            pc.binary_slice(binary(self._keys), 4, SLICE_END),
            binary(self._values),
        )

    def _stretch(self, items: Iterator[tuple[bytes, bytes]], count: int) -> None:
        """Take records from the cursor until `count` are there, or until the next wanted one is to
        be sought.
        """
        while not self.done and (room := count - len(self._keys)) and self._room > 0:
            size = next_piece(
                self._size, room, self._room, CHUNK_BYTES - self._room, len(self._keys)
            )
            piece = list(islice(items, size))
            keys, values = [key for key, _ in piece], [value for _, value in piece]
            if not self._use(keys, values):
                return
            if len(piece) < size:
                self._at = len(self._prefixes)
            self._size = min(self._size * _GROWTH, _MOST)

    def _use(self, keys: list[bytes], values: list[bytes]) -> bool:
        """Give out what is wanted of a piece.

        Whether the rest of the prefix goes on just behind the piece.
        """
        start = 0
        while keys and not self.done and self._low <= keys[-1]:
            start = bisect_left(keys, self._low, start)
            end = bisect_left(keys, self._end, start)
            stop = min(end, start + self._limit - self._taken)
            self._give(keys[start:stop], values[start:stop])
            if stop == len(keys) and self._taken < self._limit:
                self._low = keys[-1] + b"\0"
                return True
            self._size = min(max(self._taken + 1, _FEWEST), _MOST)
            self._next_prefix()
            start = stop
        return not keys

    def _merge(self, transaction: Transaction, count: int, overlay: Overlay) -> None:
        """The same for one prefix under an overlay: an attempt of this epoch has been here before,
        which is rare.
        """
        room = min(count - len(self._keys), self._limit - self._taken)
        keys, values, rest = read_chunk(transaction, self._low, self._end, max(room, 1), overlay)
        if len(keys) > room:
            keys, values, rest = keys[:room], values[:room], keys[room]
        self._give(keys, values)
        if rest is None or self._taken == self._limit:
            self._next_prefix()
        else:
            self._low = rest

    def _give(self, keys: list[bytes], values: list[bytes]) -> None:
        self._keys += keys
        self._values += values
        self._room -= sum(map(len, values))
        self._runs.append((self._at, len(keys)))
        self._taken += len(keys)

    def _next_prefix(self) -> None:
        """Go to the next prefix that a stored key can begin with."""
        self._at += 1
        while not self.done and len(self._prefixes[self._at]) > LONGEST:
            self._at += 1
        self._low = LAST if self.done else self._prefixes[self._at]
        self._end = self._low + b"\xff"
        self._taken = 0
