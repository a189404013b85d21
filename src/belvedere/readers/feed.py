"""Change feeds: what every committed epoch changed in a view.

    changes of e   =   the view as of e   -   the view as of the epoch before

So the sum of all changes up to an epoch, with all rows in front, is the view as of that epoch. A
row that was replaced is there twice, once with weight -1 and once with +1; in a view without a key
a row has as its weight how much its number changed.

An epoch as of which the view is in error shows nothing: what it changed comes with the first epoch
that can be read again.

While a complete view is live, an epoch has one transaction (`epochs.choose`). Its feed has an entry
for each, also one without rows, if the transaction changed nothing in the view.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from belvedere.catalog import pins
from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.history import (
    CONSUMER_KEEP,
    Committed,
    Consumer,
    commits_between,
    find_consumer,
    gone,
    oldest_readable,
    put_consumer,
)
from belvedere.catalog.state import CatalogState, committed
from belvedere.encoding.arrays import Ints
from belvedere.errors import CatalogError, HistoryGone, SchemaError, Stale
from belvedere.libraries import np, pa, pc
from belvedere.operators.counts import counts_of
from belvedere.readers.cut import Cut, check_readable
from belvedere.readers.problems import problems
from belvedere.readers.rows import ViewRows
from belvedere.stores.base import CatalogTransaction, Difference, Slot, Store
from belvedere.types import BIGINT, Column, Epoch, Schema
from belvedere.waiting import wait_until

EPOCH, WEIGHT = "_epoch", "_weight"


def feed_schema(view: ViewDefinition) -> Schema:
    """The view's columns, and two more."""
    for name in view.schema.names:
        if name.lower() in (EPOCH, WEIGHT):
            raise SchemaError(
                f"view {view.name} has a column {name}, which a feed has too: give it another name"
            )
    return Schema((*view.schema.columns, Column(EPOCH, BIGINT), Column(WEIGHT, BIGINT)))


@dataclass(frozen=True, slots=True)
class Step:
    """From an epoch that can be read to the next one."""

    low: Epoch
    high: Epoch
    took: bool = True  # whether operations came in between


class ViewChanges:
    """How differences of a view's table become rows of its feed."""

    def __init__(self, store: Store, view: ViewDefinition) -> None:
        self.store, self.view = store, view
        self.schema = feed_schema(view).arrow
        self._rows, self._table = ViewRows.of(view), view.planned.sink.table

    def of_slot(self, slot: Slot, step: Step) -> Iterator[pa.Table]:
        """Raises Stale if the first epoch of the step is gone."""
        state = self.store.state
        for difference in state.differences(slot, self._table, step.low, step.high):
            yield self._decode(difference, step.high)

    def all_of_slot(self, slot: Slot, epoch: Epoch) -> Iterator[pa.Table]:
        """All rows as of an epoch, as if they had come with it."""
        reader = self.store.state.reader(slot, epoch)
        try:
            for keys, values in reader.scan(self._table):
                yield self._decode((keys, pa.nulls(len(keys), pa.binary()), values), epoch)
        finally:
            reader.close()

    def of(self, step: Step | Epoch) -> pa.Table:
        """The same of all slots."""
        found = [self.schema.empty_table()]
        for slot in range(self.store.state.slots):
            found += (
                self.of_slot(slot, step) if isinstance(step, Step) else self.all_of_slot(slot, step)
            )
        return pa.concat_tables(found)

    def entry(self, step: Step | Epoch) -> pa.Table | None:
        """The same; None if there is nothing to tell, which a complete view has of no operation."""
        found = self.of(step)
        took = self.view.is_complete and (not isinstance(step, Step) or step.took)
        return found if found.num_rows or took else None

    def _decode(self, difference: Difference, epoch: Epoch) -> pa.Table:
        keys, before, after = difference
        if self._rows.sink.counts_rows:
            weights = counts_of(after) - counts_of(before)
            some = pa.array(weights != 0)
            rows = self._rows.decode_once(keys.filter(some), after.filter(some))
            return self._weighed(rows, epoch, weights[weights != 0])
        if self._rows.values is None:  # what a record holds beside its key is not shown
            moved = pc.not_equal(before.is_null(), after.is_null())
            keys, before, after = (each.filter(moved) for each in (keys, before, after))
        parts = []
        for values, weight in ((before, -1), (after, 1)):
            there = values.is_valid()
            rows = self._rows.decode_once(keys.filter(there), values.filter(there))
            parts.append(self._weighed(rows, epoch, np.full(rows.num_rows, weight)))
        return pa.concat_tables(parts)

    def _weighed(self, rows: pa.Table, epoch: Epoch, weights: Ints) -> pa.Table:
        epochs = np.full(rows.num_rows, epoch)
        more = [pa.array(epochs, pa.int64()), pa.array(weights, pa.int64())]
        return pa.table([*rows.columns, *more], schema=self.schema)


def steps(
    state: CatalogState, view: ViewDefinition, commits: Sequence[Committed], low: Epoch
) -> list[Step]:
    """What a reader who has everything up to `low` reads next: a step to every epoch as of which
    the view can be read. `commits` may begin with that of `low`.
    """
    found = []
    before = next((commit.vector for commit in commits if commit.epoch == low), None)
    for commit in commits:
        if commit.epoch > low and not replace(state, errors=commit.errors).in_error(view):
            found.append(Step(low, commit.epoch, commit.vector != before))
            low, before = commit.epoch, commit.vector
    return found


def check_start(state: CatalogState, view: ViewDefinition, since: Epoch) -> None:
    """Raise if changes after an epoch are not those of this view."""
    live = state.status[view.id].live_since
    if 0 < since < live:
        raise HistoryGone(
            f"changes of view {view.name} begin with epoch {live}, when it was created, replaced"
            " or built again: start with since=0, which begins with all rows",
            live,
        )


def steps_between(store: Store, held: CatalogState, view: ViewDefinition, low: Epoch) -> list[Step]:
    """The steps from an epoch to the one that the caller holds."""
    commits = store.catalog.read(lambda t: commits_between(t, low - 1, held.head.epoch))
    if sum(commit.epoch > low for commit in commits) < held.head.epoch - low:
        raise gone(low, store.catalog.read(oldest_readable))
    return steps(held, view, commits, low)


def feed(
    store: Store, name: str, since: Epoch, follow: bool, timeout: float | None
) -> Generator[tuple[Epoch, pa.Table | None], None, None]:
    """Tables of changes, each with the epoch up to which all is told then; None: nothing changed.

    What is needed next is held by a pin at any time. With `follow` it ends when nothing has changed
    for `timeout` seconds, however many epochs there were.
    """
    held = pins.hold(store, pins.PIN_SECONDS, since or None)
    at = held.pin.epoch
    try:
        view = held.state.view(name)
        check_start(held.state, view, since)
        check_view(store, held, view)
        changes = ViewChanges(store, view)
        if not since:
            yield at, changes.entry(at)
        told = time.monotonic()
        while newer := _next(store, at, _left(timeout, told) if follow else 0.0):
            older, held = held, newer
            try:
                check_same(held.state, view)
                for step in steps_between(store, held.state, view, at):
                    found = changes.entry(step)
                    at = step.high
                    yield at, found
                    told = time.monotonic() if found is not None else told
            finally:
                pins.release(store, older)
            check_view(store, held, view)
    except Stale as error:
        raise gone(at, store.catalog.read(oldest_readable)) from error
    finally:
        pins.release(store, held)


def _left(timeout: float | None, since: float) -> float | None:
    """Of so many seconds that began at a time."""
    return None if timeout is None else max(0.0, since + timeout - time.monotonic())


def check_view(store: Store, held: pins.Held, view: ViewDefinition) -> None:
    """Raise if the view cannot be read as of the epoch that is held."""
    cut = Cut(store, held.pin.epoch, held.pin.vector, held.state)
    check_readable(held.state, view, lambda v: problems(cut, v))


def _next(store: Store, at: Epoch, timeout: float | None) -> pins.Held | None:
    """Hold the committed epoch when it is a later one."""

    def is_later() -> bool | None:
        return committed(store).epoch > at or None

    if wait_until(is_later, timeout) is None:
        return None
    return pins.hold(store, pins.PIN_SECONDS)


def check_same(state: CatalogState, view: ViewDefinition) -> None:
    """Raise if the name stands for another view by now, or for none."""
    if state.view(view.name).id != view.id:
        raise CatalogError(
            f"view {view.name} was replaced or built again: its changes go on with since=0, which"
            " begins with all rows"
        )


def follow_from(store: Store, view: ViewDefinition, name: str, epoch: Epoch) -> None:
    """Keep for a consumer, which is made if there is none, what comes after an epoch."""

    def body(t: CatalogTransaction) -> None:
        found = find_consumer(t, name) or Consumer(name, view.id, 0, CONSUMER_KEEP)
        if found.view != view.id:
            raise CatalogError(
                f"consumer {name} follows another view, or {view.name} as it was before it was"
                f" replaced: use another name, or start again after db.drop_consumer({name!r})"
            )
        put_consumer(t, replace(found, epoch=max(found.epoch, epoch)))

    store.catalog.transact(body)
