"""A store that counts the records that are read through it: what a statement costs, whatever the
clock says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from belvedere.database import Database


class Counting:
    """A store, or a part of one, whose reads of rows are counted in `counter`."""

    def __init__(self, inner: Any, counter: Counter) -> None:
        self._inner, self._counter = inner, counter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def base(self) -> Counting:
        return Counting(self._inner.base, self._counter)

    @property
    def state(self) -> Counting:
        return Counting(self._inner.state, self._counter)

    @property
    def history(self) -> Counting | None:
        inner = self._inner.history
        return None if inner is None else Counting(inner, self._counter)

    @contextmanager
    def as_of(self, vector: Any) -> Iterator[Counting]:
        with self._inner.as_of(vector) as rows:
            yield Counting(rows, self._counter)

    @contextmanager
    def snapshot(self) -> Iterator[Counting]:
        with self._inner.snapshot() as snapshot:
            yield Counting(snapshot, self._counter)

    def reader(self, slot: int, epoch: int) -> Counting:
        self._counter.slots.add(slot)
        return Counting(self._inner.reader(slot, epoch), self._counter)

    def scan(self, *args: Any) -> Iterator[Any]:
        for keys, values in self._inner.scan(*args):
            self._counter.rows += len(keys)
            yield keys, values

    def get(self, table: int, key: bytes) -> Any:
        value = self._inner.get(table, key)
        self._counter.rows += value is not None
        return value

    def getter(self, table: int) -> Any:
        get = self._inner.getter(table)

        def counted_get(slot: int, epoch: int, key: bytes) -> Any:
            value = get(slot, epoch, key)
            self._counter.slots.add(slot)
            self._counter.rows += value is not None
            return value

        return counted_get

    def get_many(self, table: int, keys: Any) -> Any:
        values = self._inner.get_many(table, keys)
        self._counter.rows += len(values) - values.null_count
        return values

    def write(self, table: int, keys: Any, *args: Any, **options: Any) -> Any:
        self._counter.written += len(keys)
        return self._inner.write(table, keys, *args, **options)


class Counter:
    """Records that were read and written, and slots that were opened."""

    def __init__(self) -> None:
        self.rows, self.written, self.slots = 0, 0, set[int]()


@contextmanager
def counted(db: Database) -> Iterator[Counter]:
    """What is read from the database within the block."""
    counter, store = Counter(), db.store
    db.store = Counting(store, counter)  # type: ignore[assignment]  # it is one by its methods
    try:
        yield counter
    finally:
        db.store = store
