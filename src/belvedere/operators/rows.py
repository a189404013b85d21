"""Rows of an arrangement, as operators above it read them, and those that go in an epoch."""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.encoding.arrays import Ints, Mask
from belvedere.libraries import np, pa, pc


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of an arrangement: the number of each row's key, the columns behind the key, and the
    identity.
    """

    place: Ints
    rest: tuple[pa.Array, ...]
    ids: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.place)

    def take(self, rows: Ints) -> Rows:
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return self.slice(int(rows[0]), len(rows))
        at = pa.array(rows)
        return Rows(
            self.place[rows], tuple(column.take(at) for column in self.rest), self.ids.take(at)
        )

    def slice(self, start: int, count: int) -> Rows:
        return Rows(
            self.place[start : start + count],
            tuple(c.slice(start, count) for c in self.rest),
            self.ids.slice(start, count),
        )


@dataclass(frozen=True, slots=True)
class Gone:
    """Record keys that are retracted in this epoch, sorted, with the numbers of their keys;
    `counts` has how many per key.
    """

    place: Ints
    records: pa.BinaryArray
    counts: Ints

    def not_among(self, place: Ints, records: pa.BinaryArray) -> Mask | None:
        """Which of some records, sorted by key, stay; None if all do.

        Only those of keys that lose any are looked up.
        """
        losing = self.counts[place] > 0
        if not losing.any():
            return None
        first, last = np.searchsorted(self.place, [place[0], place[-1] + 1]).tolist()
        gone = self.records.slice(first, last - first)
        lost = pc.is_in(records.filter(pa.array(losing)), gone).to_numpy(zero_copy_only=False)
        stays = ~losing
        stays[losing] = ~lost
        return stays
