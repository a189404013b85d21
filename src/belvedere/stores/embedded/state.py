"""State tables: one LMDB environment per slot, and files of runs beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from belvedere.errors import StoreError
from belvedere.stores.base import Difference, Getter, Slot, SlotStatus, TableId, TableShape
from belvedere.stores.embedded import differences, run_lists, shard
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.merging_thread import Merging
from belvedere.stores.embedded.places import Place
from belvedere.stores.embedded.run_lists import Owner
from belvedere.stores.embedded.shard import EmbeddedReader, EmbeddedShard, SlotFiles
from belvedere.types import Epoch


class EmbeddedState:
    def __init__(
        self, environments: list[Environment], catalog: Callable[[], int], base: Place
    ) -> None:
        """Runs of base rows, in `base`, are merged together with ours."""
        self.places = [SlotFiles(each, slot) for slot, each in enumerate(environments)]
        self._catalog = catalog
        self.slots = len(environments)
        self._merging = Merging([*self.places, base])

    def shard(self, slot: Slot, epoch: Epoch) -> EmbeddedShard:
        return EmbeddedShard(self._slot(slot), epoch, self._catalog)

    def reader(self, slot: Slot, epoch: Epoch) -> EmbeddedReader:
        return EmbeddedReader(self.places[slot], epoch)

    def differences(
        self, slot: Slot, table: TableId, low: Epoch, high: Epoch
    ) -> Iterator[Difference]:
        return differences.between(self._slot(slot), table, low, high)

    def getter(self, table: TableId) -> Getter:
        return shard.getter(self.places, table)

    def sync(self, slot: Slot) -> None:
        """Nothing to do: commits are durable."""

    def create(self, tables: Sequence[TableShape]) -> None:
        """A table is its run_lists: there is nothing to make."""

    def collect(self, keep: Epoch) -> None:
        for place in self.places:
            _collect(place, keep, self._catalog())
        self._merging.go_on()

    def drop(self, slot: Slot, table: TableId, seconds: float = math.inf) -> bool:
        """Its run_lists go at once; files that no other table is in go with the next collection."""
        environment, owner = self._slot(slot).environment, run_lists.owner_of(table)

        def forget(transaction: Transaction) -> None:
            run_lists.set_floors(transaction, *run_lists.floors(transaction), self._catalog())
            run_lists.forget(transaction, owner)

        if environment.read(lambda transaction: run_lists.has_any(transaction, owner)):
            environment.write(forget, frees=True)
        return True

    def count(self, slot: Slot, table: TableId) -> tuple[int, int]:
        environment, owner = self._slot(slot).environment, run_lists.owner_of(table)
        return environment.read(lambda transaction: run_lists.count(transaction, owner))

    def status(self, slot: Slot) -> SlotStatus:
        place = self._slot(slot)
        write, history = place.environment.read(run_lists.floors)
        used = place.environment.used_bytes + place.files.used_bytes()
        return SlotStatus(slot, write, history, used)

    def close(self) -> None:
        self._merging.stop()

    def _slot(self, slot: Slot) -> SlotFiles:
        if not 0 <= slot < self.slots:
            raise StoreError(f"there is no slot {slot}: this store has slots 0 to {self.slots - 1}")
        return self.places[slot]


def _collect(place: SlotFiles, keep: Epoch, catalog: int) -> None:
    """Run lists that only readers below `keep` need, then files that no run list names."""

    def body(transaction: Transaction) -> None:
        write, history = run_lists.floors(transaction)
        for owner, epoch in _replaced(transaction, keep):
            run_lists.remove(transaction, owner, epoch)
        place.forget_unnamed(transaction)
        run_lists.set_floors(transaction, max(write, keep), max(history, keep), catalog)

    # else there is nothing left to drop: attempts below are refused
    if place.environment.read(run_lists.floors)[1] < keep:
        place.environment.write(body, frees=True)
        place.remove_unnamed(keep)


def _replaced(transaction: Transaction, keep: Epoch) -> list[tuple[Owner, Epoch]]:
    """Run lists that are followed by one that is not above `keep`."""
    known = [(owner, epoch) for owner, epoch, _ in run_lists.every(transaction)]
    return [
        before for before, (owner, epoch) in pairwise(known) if before[0] == owner and epoch <= keep
    ]
