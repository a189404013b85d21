"""Committed epochs that can still be read: when they were committed, what they contain, and how
many of them are kept.

    EPOCHS     one entry per committed epoch from the floor on: its time, vector and rows in error
    KEPT       how much history the database keeps for readers of the past
    CONSUMERS  named readers of a change feed: the epoch that each has read, and how much history it
               may hold

What a reader may ask for is decided here; `epochs.commits` raises the floor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from belvedere.catalog import layout
from belvedere.catalog.head import Head
from belvedere.catalog.state import CatalogState, read_floor, read_head, read_state
from belvedere.errors import CatalogError, HistoryGone, SchemaError
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Epoch, Vector

AsOf = Epoch | datetime  # an epoch, or the newest one that was committed at that time
MOST_EPOCHS = 100_000  # a run list, and an entry here, for each of them
MOST_SECONDS = 366 * 86_400.0
_LONGEST_NAME = 200  # bytes, of a consumer: they are a part of a key of the catalog


@dataclass(frozen=True, slots=True)
class Keep:
    """So many epochs before the committed one, and all that were current in so many seconds; the
    larger of both. Nothing of both: as many as the pipeline needs.
    """

    epochs: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if not _is_number(self.epochs, int) or not 0 <= self.epochs <= MOST_EPOCHS:
            raise SchemaError(
                f"history in epochs is a whole number from 0 to {MOST_EPOCHS:,}, not"
                f" {self.epochs!r}"
            )
        if not _is_number(self.seconds, int | float) or not 0 <= self.seconds <= MOST_SECONDS:
            raise SchemaError(
                f"history in seconds is a number from 0 to {MOST_SECONDS:,.0f}, not"
                f" {self.seconds!r}"
            )

    def __bool__(self) -> bool:
        return bool(self.epochs or self.seconds)

    def __str__(self) -> str:
        parts = [f"{self.epochs:,} epochs"] if self.epochs else []
        parts += [f"{self.seconds:g} seconds"] if self.seconds else []
        return " and ".join(parts)

    def to_json(self) -> dict[str, Any]:
        return {"epochs": self.epochs, "seconds": self.seconds}


def _is_number(value: object, kinds: Any) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


CONSUMER_KEEP = Keep(epochs=10_000, seconds=86_400.0)  # for a consumer that asks for nothing else


def keep_history(store: Store, keep: Keep) -> None:
    store.catalog.transact(lambda t: layout.KEPT.put(t, keep.to_json()))


def kept(t: CatalogTransaction) -> Keep:
    return Keep(**(layout.KEPT.get(t) or {}))


# ---------------------------------------------------------------- committed epochs


@dataclass(frozen=True, slots=True)
class Committed:
    """What is known of an epoch that can be read; `errors` as in `CatalogState`."""

    epoch: Epoch
    time: float
    vector: Vector
    errors: dict[int, int]


def note_commit(t: CatalogTransaction, epoch: Epoch, vector: Vector, now: float) -> None:
    """In the transaction that commits the epoch, after rows in error are counted.

    Times of epochs never decrease, also if the clock was set back: they are searched.
    """
    before = layout.EPOCHS.get(t, epoch - 1)
    now = now if before is None else max(now, before["time"])
    counts = {str(table): sum(slots.values()) for table, slots in layout.ERRORS.all(t).items()}
    errors = {table: count for table, count in counts.items() if count}
    layout.EPOCHS.put(t, epoch, {"time": now, "vector": vector.to_json(), "errors": errors})


def forget_commits(t: CatalogTransaction, low: Epoch, high: Epoch) -> None:
    for epoch in range(low, high):
        layout.EPOCHS.delete(t, epoch)


def _committed(t: CatalogTransaction, epoch: Epoch) -> Committed | None:
    found = layout.EPOCHS.get(t, epoch)
    if found is None:
        return None
    errors = {int(table): count for table, count in found["errors"].items()}
    return Committed(epoch, found["time"], Vector(found["vector"]), errors)


def commits_between(t: CatalogTransaction, low: Epoch, high: Epoch) -> list[Committed]:
    """Epochs above `low`, up to `high`, of which something is known."""
    found = (_committed(t, epoch) for epoch in range(low + 1, high + 1))
    return [commit for commit in found if commit is not None]


def epoch_at(t: CatalogTransaction, moment: float, low: Epoch, high: Epoch) -> Epoch:
    """The newest epoch from `low` to `high` that was committed at or before a moment; `low` - 1 if
    there is none.
    """

    def time_of(epoch: Epoch) -> float:
        found = layout.EPOCHS.get(t, epoch)
        return 0.0 if found is None else float(found["time"])

    return low + bisect_right(range(low, high + 1), moment, key=time_of) - 1


def oldest_wanted(t: CatalogTransaction, keep: Keep, head: Epoch, now: float) -> Epoch:
    """The oldest epoch that `keep` asks for."""
    oldest = head - keep.epochs
    if keep.seconds:
        floor = max(read_floor(t), 1)
        oldest = min(oldest, max(epoch_at(t, now - keep.seconds, floor, head), floor))
    return max(oldest, 0)


def held_by_history(t: CatalogTransaction, head: Epoch, now: float) -> Epoch:
    """From here on epochs are kept, for readers of the past and for consumers."""
    policy = kept(t)
    held = [oldest_wanted(t, policy, head, now)] if policy else [head]
    for consumer in consumers(t):
        if not consumer.epoch or layout.STATUS.get(t, consumer.view) is None:
            continue  # it will begin with all rows, or its view was dropped
        bound = oldest_wanted(t, consumer.keep, head, now)
        held.append(max(consumer.epoch, bound))
    return min(held)


def rows_kept(store: Store, head: Head, now: float) -> Vector:
    """The log behind this vector is kept, so that base rows can be read as of kept epochs."""

    def body(t: CatalogTransaction) -> Vector:
        policy = kept(t)
        if not policy:
            return head.vector
        oldest = max(oldest_wanted(t, policy, head.epoch, now), oldest_readable(t))
        found = _committed(t, oldest)
        return head.vector if found is None else head.vector.lowest(found.vector)

    return store.catalog.read(body)


# ---------------------------------------------------------------- the catalog as of an epoch


def state_as_of(t: CatalogTransaction, as_of: AsOf, now: float) -> CatalogState:
    """Names as they are now, with the epoch, vector and rows in error of the past.

    Who reads a relation checks that it was there (`readers.cut`).
    """
    state, floor = read_state(t), read_floor(t)
    epoch = _epoch_of(t, as_of, state.head.epoch, floor, now)
    if epoch == state.head.epoch:
        return state
    found = _committed(t, epoch) if epoch >= floor else None
    if found is None:
        raise gone(epoch, oldest_readable(t))
    head = replace(state.head, epoch=epoch, vector=found.vector)
    return replace(state, head=head, errors=found.errors)


def oldest_readable(t: CatalogTransaction) -> Epoch:
    head, floor = read_head(t).epoch, max(read_floor(t), 1)
    return next((e for e in range(floor, head) if layout.EPOCHS.get(t, e) is not None), head)


def gone(epoch: Epoch, oldest: Epoch) -> HistoryGone:
    return HistoryGone(
        f"epoch {epoch} cannot be read any more, the oldest one that can is {oldest}: keep more"
        " with db.keep_history(epochs=..., seconds=...) or belvedere history",
        oldest,
    )


def _epoch_of(t: CatalogTransaction, as_of: AsOf, head: Epoch, floor: Epoch, now: float) -> Epoch:
    if isinstance(as_of, datetime):
        return _epoch_of_time(t, as_of, head, floor, now)
    if not _is_number(as_of, int) or as_of < 0:
        raise SchemaError(
            f"a version is the number of an epoch, or a datetime, not {as_of!r}: db.status()"
            " lists recent epochs"
        )
    if as_of > head:
        raise SchemaError(f"epoch {as_of} is not committed yet: the newest one is {head}")
    return as_of


def _epoch_of_time(
    t: CatalogTransaction, moment: datetime, head: Epoch, floor: Epoch, now: float
) -> Epoch:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if aware.timestamp() > now:
        raise SchemaError(f"{moment} is in the future: leave AS OF out to read what is there now")
    first = oldest_readable(t)
    found = epoch_at(t, aware.timestamp(), max(first, floor, 1), head)
    if found < max(first, floor, 1):
        began = layout.EPOCHS.get(t, first)
        since = "" if began is None else f", committed {datetime.fromtimestamp(began['time'], UTC)}"
        raise HistoryGone(
            f"what was there at {moment} cannot be read any more, the oldest epoch that can is"
            f" {first}{since}: keep more with db.keep_history(epochs=..., seconds=...) or"
            " belvedere history",
            first,
        )
    return found


# ---------------------------------------------------------------- consumers


@dataclass(frozen=True, slots=True)
class Consumer:
    """A named reader of a view's changes. `epoch`: it has all changes up to it."""

    name: str
    view: int
    epoch: Epoch
    keep: Keep


def check_consumer_name(name: object) -> None:
    is_text = isinstance(name, str) and name.isprintable() and "/" not in name
    if not is_text or not 0 < len(str(name).encode()) <= _LONGEST_NAME:
        raise SchemaError(
            f"the name of a consumer is a text of at most {_LONGEST_NAME} bytes, without / and"
            f" characters that are not seen: {name!r:.80} is none"
        )


def consumers(t: CatalogTransaction) -> Iterator[Consumer]:
    for name, said in layout.CONSUMERS.all(t).items():
        yield Consumer(name, said["view"], said["epoch"], Keep(**said["keep"]))


def find_consumer(t: CatalogTransaction, name: str) -> Consumer | None:
    return next((found for found in consumers(t) if found.name == name), None)


def put_consumer(t: CatalogTransaction, consumer: Consumer) -> None:
    said = {"view": consumer.view, "epoch": consumer.epoch, "keep": consumer.keep.to_json()}
    layout.CONSUMERS.put(t, consumer.name, said)


def drop_consumer(store: Store, name: str) -> None:
    def body(t: CatalogTransaction) -> None:
        if find_consumer(t, name) is None:
            raise CatalogError(f"there is no consumer {name}: db.consumers() lists them")
        layout.CONSUMERS.delete(t, name)

    store.catalog.transact(body)
