"""The changes of a view as a user sees them: one Arrow table per epoch that changed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from belvedere.catalog.history import (
    CONSUMER_KEEP,
    Consumer,
    Keep,
    check_consumer_name,
    find_consumer,
    put_consumer,
)
from belvedere.catalog.state import read_state
from belvedere.errors import CatalogError, HistoryGone, SchemaError
from belvedere.libraries import pa
from belvedere.readers.feed import feed
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Epoch
from belvedere.waiting import check_seconds


class Changes(Iterator["pa.Table"]):
    """Iterate over it; `epoch` is the one up to which everything has been given.

    Who stores that together with what he made of the changes, and begins again with it as `since`,
    has every change exactly once.
    """

    def __init__(
        self,
        store: Store,
        view: str,
        since: Epoch | None,
        follow: bool,
        timeout: float | None,
        consumer: Consumer | None = None,
    ) -> None:
        check_seconds("timeout", timeout)
        start = (consumer.epoch if consumer is not None else 0) if since is None else since
        if not isinstance(start, int) or isinstance(start, bool) or start < 0:
            raise SchemaError(f"since is the number of an epoch, 0 for all rows, not {since!r}")
        self.epoch, self.consumer = start, consumer
        self._store = store
        self._feed = feed(store, view, start, follow, timeout)

    def __next__(self) -> pa.Table:
        try:
            for epoch, found in self._feed:
                self.epoch = epoch
                if found is not None:
                    return found
        except HistoryGone as error:
            raise self._behind(error) from error
        raise StopIteration

    def acknowledge(self) -> None:
        """The consumer has dealt with everything up to `epoch`: the next time it goes on there, and
        history before is not kept for it.
        """
        if self.consumer is None:
            raise CatalogError(
                "these changes have no consumer: give changes() a name, as in consumer='billing'"
            )
        name, epoch = self.consumer.name, self.epoch

        def body(t: CatalogTransaction) -> None:
            found = find_consumer(t, name)
            if found is None:
                raise CatalogError(f"consumer {name} was dropped")
            put_consumer(t, replace(found, epoch=max(found.epoch, epoch)))

        self._store.catalog.transact(body)

    def close(self) -> None:
        """Let go of what is held for the next change; leaving a `with` block does the same."""
        self._feed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _behind(self, error: HistoryGone) -> HistoryGone:
        if self.consumer is None:
            return HistoryGone(
                f"{error}. To start again: since=0 begins with all rows", error.oldest
            )
        name = self.consumer.name
        return HistoryGone(
            f"consumer {name} has fallen behind: {error}. To start again with all rows:"
            f" db.drop_consumer({name!r}), then changes(consumer={name!r})",
            error.oldest,
        )


def consumer_of(store: Store, view: str, name: str, keep: Keep | None) -> Consumer:
    """The consumer of that name, which is made if there is none; `keep` bounds what is kept for
    it.
    """
    check_consumer_name(name)

    def body(t: CatalogTransaction) -> Consumer:
        wanted = read_state(t).view(view)
        found = find_consumer(t, name)
        if found is None:
            found = Consumer(name, wanted.id, 0, keep or CONSUMER_KEEP)
        elif found.view != wanted.id:
            raise CatalogError(
                f"consumer {name} follows another view, or {view} as it was before it was replaced:"
                f" use another name, or start again after db.drop_consumer({name!r})"
            )
        found = found if keep is None else replace(found, keep=keep)
        put_consumer(t, found)
        return found

    return store.catalog.transact(body)
