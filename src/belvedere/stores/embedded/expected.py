"""Rows that a transaction has read, compared when it is written.

    before the lock     with a snapshot, as of what is published
    under the lock      with what was appended behind that snapshot, by whoever was faster

So a writer holds the others up for a look at a few operations, not at the rows themselves. What is
appended and not published yet counts too: it comes before this transaction in the log.
"""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.errors import RowConflict
from belvedere.libraries import pa
from belvedere.stores.base import Expected, TableId
from belvedere.stores.embedded import log
from belvedere.stores.embedded.base_rows import FEW, EmbeddedSnapshot
from belvedere.stores.embedded.log import Log, Stretch
from belvedere.types import Position

_Written = dict[tuple[TableId, bytes], bytes | None]


class ExpectedRows:
    def __init__(self, source: Log, expected: Sequence[Expected]) -> None:
        self._log = source
        self._values: _Written = {(row.table, row.key): row.value for row in expected}
        self._position: Position = 0  # as of which they have been compared

    def check(self, snapshot: EmbeddedSnapshot) -> None:
        if len(self._values) <= FEW:
            for row in self._values:
                self._compare(row, snapshot.get(*row))
        else:
            self._check_many(snapshot)
        self._position = snapshot.position

    def _check_many(self, snapshot: EmbeddedSnapshot) -> None:
        by_table: dict[TableId, list[bytes]] = {}
        for table, key in self._values:
            by_table.setdefault(table, []).append(key)
        for table, keys in by_table.items():
            values = snapshot.get_many(table, pa.array(keys, pa.binary())).to_pylist()
            for key, value in zip(keys, values, strict=True):
                self._compare((table, key), value)

    def check_since(self, end: Position) -> None:
        """While nobody appends; Stale if what was appended is trimmed already."""
        if not self._values or self._position >= end:
            return
        written: _Written = {}
        for stretch in log.stretches(self._log, self._position, end):
            written.update(self._touched(stretch))
        for row, value in written.items():
            self._compare(row, value)

    def _touched(self, stretch: Stretch) -> _Written:
        """What a transaction has made of the rows that are expected."""
        tables = stretch.tables().intersection(table for table, _ in self._values)
        found: _Written = {}
        for block in stretch.blocks() if tables else ():
            if block.table not in tables:
                continue
            for key, value in zip(block.keys.to_pylist(), block.values.to_pylist(), strict=True):
                if (block.table, key) in self._values:
                    found[block.table, key] = value
        return found

    def _compare(self, row: tuple[TableId, bytes], value: bytes | None) -> None:
        if value != self._values[row]:
            raise RowConflict(*row)
