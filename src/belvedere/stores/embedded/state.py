"""State tables: one LMDB environment per slot, and files of runs beside it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise

from belvedere.errors import StoreError
from belvedere.stores.base import Getter, Slot, SlotStatus, TableId, TableShape
from belvedere.stores.embedded import merging, run_files, run_lists, shard
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.shard import EmbeddedReader, EmbeddedShard, SlotFiles
from belvedere.types import Epoch


class EmbeddedState:
    def __init__(self, environments: list[Environment], catalog: Callable[[], int]) -> None:
        self.places = [SlotFiles(each, slot) for slot, each in enumerate(environments)]
        self._catalog = catalog
        self.slots = len(environments)
        self._merging = _Merging(self.places)

    def shard(self, slot: Slot, epoch: Epoch) -> EmbeddedShard:
        return EmbeddedShard(self._slot(slot), epoch, self._catalog)

    def reader(self, slot: Slot, epoch: Epoch) -> EmbeddedReader:
        return EmbeddedReader(self.places[slot], epoch)

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
        environment = self._slot(slot).environment
        if environment.read(lambda transaction: run_lists.has_table(transaction, table)):
            environment.write(
                lambda transaction: run_lists.forget(transaction, table, self._catalog()),
                frees=True,
            )
        return True

    def count(self, slot: Slot, table: TableId) -> tuple[int, int]:
        environment = self._slot(slot).environment
        return environment.read(lambda transaction: run_lists.count(transaction, table))

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
    """Run lists that only readers below `keep` need, then files that no run list names.

    Files go inside of the transaction: who names one looks there whether it is still there.
    """

    def body(transaction: Transaction) -> None:
        write, history = run_lists.floors(transaction)
        for table, epoch in _replaced(transaction, keep):
            transaction.delete(run_lists.key_of(table, epoch))
        named = _named(transaction, place)
        run_lists.remove_sections(transaction, named)
        _remove_unnamed(place, keep, named)
        run_lists.set_floors(transaction, max(write, keep), max(history, keep), catalog)

    # else there is nothing left to drop: attempts below are refused
    if place.environment.read(run_lists.floors)[1] < keep:
        place.environment.write(body, frees=True)


def _replaced(transaction: Transaction, keep: Epoch) -> list[tuple[TableId, Epoch]]:
    """Run lists that are followed by one that is not above `keep`."""
    known = [(table, epoch) for table, epoch, _ in run_lists.every(transaction)]
    return [
        before for before, (table, epoch) in pairwise(known) if before[0] == table and epoch <= keep
    ]


def _named(transaction: Transaction, place: SlotFiles) -> set[str]:
    return {
        ref.file
        for table, _, data in run_lists.every(transaction)
        for run in run_lists.decode(data, place.where(table))
        for ref in run
    }


def _remove_unnamed(place: SlotFiles, keep: Epoch, named: set[str]) -> None:
    """Files of attempts that are too late by now, and of runs that were merged."""
    for name in set(place.files.names()) - named - place.files.in_flight:
        if run_files.epoch_of(name) <= keep:
            place.files.remove(name)


class _Merging:
    """Merges what is due, one after the other, in a thread that ends when nothing is left."""

    def __init__(self, places: Sequence[SlotFiles]) -> None:
        self._places = places
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._failed: BaseException | None = None

    def go_on(self) -> None:
        """Raises what the last thread has met."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        if self._thread is not None and self._thread.is_alive():
            return
        if any(place.environment.read(merging.next_merge) for place in self._places):
            self._thread = threading.Thread(target=self._run, name="merging", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            for place in self._places:
                self._merge(place)
        except BaseException as error:  # for the next caller: a thread has nobody to tell
            self._failed = error

    def _merge(self, place: SlotFiles) -> None:
        while not self._stopped.is_set():
            merge = place.environment.read(merging.next_merge)
            if merge is None:
                return
            is_stopped = self._stopped.is_set
            if not merging.do(place.environment, place.files, merge, is_stopped):
                return
