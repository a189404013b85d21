"""State tables: one environment per slot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from belvedere.errors import StoreError
from belvedere.stores.base import Getter, Slot, SlotStatus, TableId, TableShape
from belvedere.stores.embedded import dropping, undo
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.shard import EmbeddedReader, EmbeddedShard
from belvedere.types import Epoch


class EmbeddedState:
    def __init__(self, environments: list[Environment], catalog: Callable[[], int]) -> None:
        self._environments, self._catalog = environments, catalog
        self.slots = len(environments)

    def shard(self, slot: Slot, epoch: Epoch) -> EmbeddedShard:
        return EmbeddedShard(self._slot(slot), slot, epoch, self._catalog)

    def reader(self, slot: Slot, epoch: Epoch) -> EmbeddedReader:
        return EmbeddedReader(self._environments[slot], slot, epoch)

    def getter(self, table: TableId) -> Getter:
        return undo.getter(self._environments, table)

    def sync(self, slot: Slot) -> None:
        """Nothing to do: commits are durable.

        LMDB without sync at commit could be damaged by a crash of the machine.
        """

    def create(self, tables: Sequence[TableShape]) -> None:
        """A table is a prefix of keys: there is nothing to make."""

    def collect(self, keep: Epoch) -> None:
        for slot in range(self.slots):
            self._collect(slot, keep)

    def _collect(self, slot: Slot, keep: Epoch) -> None:
        def body(transaction: Transaction) -> None:
            write, history = undo.floors(transaction)
            with transaction.cursor() as cursor:
                found = cursor.set_range(undo.UNDO)
                while found and cursor.key().startswith(undo.UNDO):
                    found = (
                        cursor.delete() if undo.epoch_of(cursor.key()) <= keep else cursor.next()
                    )
            undo.set_floors(transaction, max(write, keep), max(history, keep), self._catalog())

        environment = self._slot(slot)
        # else there is nothing left to drop: attempts below are refused
        if environment.read(undo.floors)[1] < keep:
            environment.write(body, frees=True)

    def drop(self, slot: Slot, table: TableId, seconds: float = math.inf) -> bool:
        """What is gone costs a read only: who comes back with little time must get further each
        time, however slow the disk.
        """

        def step(transaction: Transaction) -> bool:
            undo.forget(transaction, table, self._catalog())
            return dropping.remove_some(transaction, table)

        environment = self._slot(slot)
        if not environment.read(lambda transaction: undo.has_table(transaction, table)):
            return True
        return not dropping.until(seconds, lambda: environment.write(step, frees=True))

    def count(self, slot: Slot, table: TableId) -> tuple[int, int]:
        return self._slot(slot).read(lambda transaction: undo.count(transaction, table))

    def status(self, slot: Slot) -> SlotStatus:
        environment = self._slot(slot)
        write, history = environment.read(undo.floors)
        return SlotStatus(slot, write, history, environment.used_bytes)

    def _slot(self, slot: Slot) -> Environment:
        if not 0 <= slot < self.slots:
            raise StoreError(f"there is no slot {slot}: this store has slots 0 to {self.slots - 1}")
        return self._environments[slot]
