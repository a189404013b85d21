"""How far the sources of a view are in it: one row of an internal table, written with the rows that
it is about, in one transaction.

Only who keeps the view writes it, and each write is refused if somebody else has written since, so
of two the older one ends at its next write.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from belvedere.errors import Conflict, Damaged
from belvedere.libraries import pa
from belvedere.stores.base import Operations, Store, TableId
from belvedere.types import Vector

_KEY = b"covered"
_ATTEMPTS = 100  # beside somebody who writes several times a second


@dataclass(frozen=True, slots=True)
class Covered:
    """`positions` per source; none before the view is loaded. `unseen` are transactions that no
    answer has shown. `loaded` has, per source, the marker and the end of the answer with which the
    view was loaded, until the position has come there: what it shows is not received again.
    `again`: what servers keep for the view has to be made anew, and the view is loaded again.
    """

    incarnation: str = ""
    positions: dict[str, str] = field(default_factory=dict)
    unseen: dict[str, tuple[str, ...]] = field(default_factory=dict)
    loaded: dict[str, tuple[str, str]] = field(default_factory=dict)
    again: bool = False

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Covered:
        try:
            found = json.loads(data)
            unseen = {source: tuple(names) for source, names in found["unseen"].items()}
            loaded = {source: (marker, end) for source, (marker, end) in found["loaded"].items()}
            again = bool(found.get("again"))
            return cls(found["incarnation"], found["positions"], unseen, loaded, again)
        except (ValueError, TypeError, KeyError) as error:
            raise Damaged("how far a view has come") from error


def read_covered(store: Store, table: TableId) -> tuple[Covered, Vector]:
    """The row as it is now, and a vector that contains it."""
    with store.base.snapshot() as snapshot:
        found = snapshot.get(table, _KEY)
        return Covered() if found is None else Covered.from_bytes(found), snapshot.vector


def ask_load(store: Store, table: TableId) -> None:
    """Have a view loaded again by whoever keeps it, who begins anew at his next write."""
    for attempt in range(_ATTEMPTS):
        ledger = Ledger(store, table)
        try:
            ledger.write([], Covered(uuid.uuid4().hex, again=True))
            return
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise


class Ledger:
    """Where one process writes."""

    def __init__(self, store: Store, table: TableId) -> None:
        self._store, self._table = store, table
        self.covered, self.vector = read_covered(store, table)

    def write(self, operations: Sequence[Operations], covered: Covered) -> None:
        """One transaction; raises Conflict if somebody else keeps the view by now."""
        row = Operations(
            self._table,
            pa.array([_KEY], pa.binary()),
            pa.array([covered.to_bytes()], pa.binary()),
            False,
        )
        written = self._store.base.write_all([*operations, row], self.vector)
        self.vector = self.vector.merge(written)
        self.covered = covered
