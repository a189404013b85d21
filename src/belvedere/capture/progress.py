"""How far a source was followed: a row of an internal table, in the transaction of what it tells
of, and beside it a row for each of the last transactions.

So rows and position are never from different times: not after a crash, and not in a backup. Only
who follows writes it, and each write is refused if somebody else has written since, so of two
followers the older one ends at its next write.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

from belvedere.errors import Damaged
from belvedere.libraries import pa
from belvedere.stores.base import BaseSnapshot, Operations, Store, TableId
from belvedere.types import Vector

T = TypeVar("T")
_KEY = b"progress"
_RECENT_KEY = b"recent"
RECENT = 1000  # transactions whose names are kept


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy of a relation is written; the log has to reach `end` until all that it shows was
    followed. `claim` names it, if it fills a table for a while.
    """

    marker: str
    end: str
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """`position` is "" before the source has prepared its log. `follower` names who wrote this,
    `generation` is that of the source's definition for which it is true. `last` is the last
    transaction, `time` when it was committed, `transactions` how many there were. `stopped` has the
    reasons of relations that cannot be followed; `refused` those of them that could not be copied
    either, with the version of the catalog in which that was tried. Of a transaction that has to be
    divided `half` is the name, and `halves` has the last keys of its relations that are written
    (hex), until all of it is.
    """

    follower: str = ""
    generation: int = 0
    position: str = ""
    last: str = ""
    time: float = 0.0
    transactions: int = 0
    copies: dict[str, Copied] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    half: str = ""
    halves: dict[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        # asdict copies all of it, for each transaction that is followed
        found = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(found, default=asdict).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Progress:
        try:
            found = json.loads(data)
            copies = {relation: Copied(**copy) for relation, copy in found["copies"].items()}
            return cls(**{**found, "copies": copies})
        except (ValueError, TypeError, KeyError) as error:
            raise Damaged("how far a source was followed") from error

    def stop(self, relation: str, reason: str) -> Progress:
        stopped = {**self.stopped, relation: reason}
        return replace(self, stopped=stopped, copies=_without(self.copies, relation))

    def refuse(self, relation: str, reason: str, version: int) -> Progress:
        refused = {**self.refused, relation: version}
        return replace(self.stop(relation, reason), refused=refused)

    def with_copy(self, relation: str, copied: Copied) -> Progress:
        copies = {**self.copies, relation: copied}
        stopped, refused = _without(self.stopped, relation), _without(self.refused, relation)
        return replace(self, copies=copies, stopped=stopped, refused=refused)

    def with_half(self, transaction: str, relation: str, last: bytes) -> Progress:
        known = self.halves if self.half == transaction else {}
        return replace(self, half=transaction, halves={**known, relation: last.hex()})

    def without_copy(self, relation: str) -> Progress:
        return replace(self, copies=_without(self.copies, relation))


def _without(found: dict[str, T], name: str) -> dict[str, T]:
    return {key: value for key, value in found.items() if key != name}


def read_progress(store: Store, table: TableId) -> tuple[Progress, Vector]:
    """The row as it is now, and a vector that contains it."""
    with store.base.snapshot() as snapshot:
        return _in(snapshot, table), snapshot.vector


def progress_in_views(store: Store, table: TableId, vector: Vector) -> Progress | None:
    """The row as the epochs contain it; None if the store cannot tell."""
    if store.history is None:
        return None
    with store.history.as_of(vector) as rows:
        return _in(rows, table)


def read_recent(store: Store, table: TableId, progress: Progress) -> list[str]:
    """Names of the last transactions, in their order."""
    with store.base.snapshot() as snapshot:
        places = range(progress.transactions - RECENT + 1, progress.transactions + 1)
        keys = pa.array([_recent_key(place) for place in places], pa.binary())
        found = snapshot.get_many(table, keys).to_pylist()
    said = [json.loads(value) for value in found if value is not None]
    return [name for generation, name, *_ in said if generation == progress.generation]


def read_time(store: Store, table: TableId, progress: Progress, transaction: int) -> float:
    """When the transaction with this number was committed, or the oldest behind it that is known;
    0.0 if that is not known.
    """
    place = max(transaction, progress.transactions - RECENT + 1)
    with store.base.snapshot() as snapshot:
        found = snapshot.get(table, _recent_key(place))
    _, _, *time = json.loads(found) if found is not None else ("", "")
    return float(time[0]) if time else 0.0


def _recent_key(transaction: int) -> bytes:
    return _RECENT_KEY + (transaction % RECENT).to_bytes(2, "big")


def _in(snapshot: BaseSnapshot, table: TableId) -> Progress:
    found = snapshot.get(table, _KEY)
    return Progress() if found is None else Progress.from_bytes(found)


class Ledger:
    """Where one follower writes: operations of a source's transaction together with the progress
    that they make.
    """

    def __init__(self, store: Store, table: TableId) -> None:
        self._store, self._table = store, table
        self.progress, self._known = read_progress(store, table)

    def write(self, operations: Sequence[Operations], progress: Progress) -> Vector:
        """One transaction; raises Conflict if somebody else follows the source by now."""
        keys, values = [_KEY], [progress.to_bytes()]
        if progress.transactions > self.progress.transactions:
            keys.append(_recent_key(progress.transactions))
            values.append(json.dumps([progress.generation, progress.last, progress.time]).encode())
        arrays = pa.array(keys, pa.binary()), pa.array(values, pa.binary())
        rows = Operations(self._table, *arrays, False)
        written = self._store.base.write_all([*operations, rows], self._known)
        self._known = self._known.merge(written)
        self.progress = progress
        return written
