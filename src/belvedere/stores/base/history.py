"""Base rows as they were: a store that can tell needs no before-images and no delta views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from belvedere.libraries import pa
from belvedere.stores.base.base_tables import BaseSnapshot, TableId
from belvedere.types import Vector


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Net changes of a base table: sorted keys, each once, with the row before and after; NULL: no
    row.
    """

    table: TableId
    keys: pa.BinaryArray
    before: pa.BinaryArray
    after: pa.BinaryArray


class PastRows(BaseSnapshot, Protocol):
    """All base tables as of a vector."""

    def scan_slots(
        self, table: TableId, slots: Sequence[int], low: bytes, high: bytes | None
    ) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        """The rows of some slots, in key order, in batches."""


class RowHistory(Protocol):
    def as_of(self, vector: Vector) -> AbstractContextManager[PastRows]:
        """All rows as of a vector of boundaries of transactions.

        It can be read as long as nobody has trimmed the log beyond it; then Stale is raised.
        """

    def settle(self, slot: int, low: Vector, high: Vector, changes: Iterable[RowChanges]) -> None:
        """What a task has found out about the rows of a slot: all net changes of all tables between
        two vectors. They are made when they are asked for.

        The store may use it to bring rows from the log to where they are kept, or leave it. It may
        be called again, late, by several tasks at once, and for an epoch that is never committed:
        rows are what the log says.
        """
