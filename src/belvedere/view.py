"""A view as its readers see it: always the committed epoch, the same cut as every other view."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from belvedere.catalog import pins
from belvedere.catalog.definitions import LIVE, ViewDefinition
from belvedere.catalog.history import AsOf, Keep
from belvedere.catalog.state import CatalogState
from belvedere.errors import SchemaError, Stale
from belvedere.feed import Changes, consumer_of
from belvedere.libraries import pa
from belvedere.readers.cut import CatalogCache, Cut, at_cut, check_readable, in_cut, open_cut
from belvedere.readers.points import PointRead, point_read
from belvedere.readers.problems import problems
from belvedere.readers.rows import check_limit, key_tuple
from belvedere.spark.frames import view_frame
from belvedere.stores.base import Store
from belvedere.types import Epoch, Key, Row, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from belvedere.why import Why


# how to read, while the catalog's mark is this one
_Point = tuple[Hashable, PointRead, Epoch, CatalogState]


class View:
    """Reads of one view.

    `before` is called before every read: a session waits there for its own writes.
    """

    def __init__(
        self,
        store: Store,
        cache: CatalogCache,
        name: str,
        spark: Callable[[], SparkSession],
        before: Callable[[], None] | None = None,
    ) -> None:
        self._store, self._cache, self.name, self._spark, self._before = (
            store,
            cache,
            name,
            spark,
            before,
        )
        self._mark, self._point = store.catalog.mark, cast(_Point | None, None)
        self._definition()

    def __repr__(self) -> str:
        return f"<View {self.name} of {self._store.url}>"

    @property
    def schema(self) -> Schema:
        return self._definition().schema

    @property
    def sql(self) -> str:
        return self._definition().select

    def get(self, key: Key = (), as_of: AsOf | None = None) -> Row | None:
        """The row under a key (a scalar, or a tuple for keys of several columns), or None.

        Every read takes `as_of`: an epoch, or a datetime (UTC if it has no zone), within the
        history that is kept; see `Database.keep_history`.
        """
        if as_of is not None:
            return in_cut(self._store, lambda cut: self._get_at(cut, key), as_of)
        if self._before is not None:
            self._before()
        while True:
            point = self._point
            if point is None or point[0] != self._mark():
                point = self._point = self._prepared(point)
            try:
                return point[1](key, point[2])
            except Stale:
                continue

    def _get_at(self, cut: Cut, key: Key) -> Row | None:
        return point_read(self._store.state, self._check(cut))(key, cut.epoch)

    def scan(
        self,
        prefix: Sequence[Any] | Key = (),
        limit: int | None = None,
        as_of: AsOf | None = None,
    ) -> Iterator[Row]:
        """Rows in key order, all or those whose key begins with `prefix`."""
        table = self._rows(key_tuple(prefix), True, check_limit(limit), as_of)
        yield from (table if limit is None else table.slice(0, limit)).to_pylist()

    def to_arrow(self, prefix: Sequence[Any] | Key = (), as_of: AsOf | None = None) -> pa.Table:
        """All rows that the view's SELECT would return, duplicates included, in no particular
        order.
        """
        return self._rows(key_tuple(prefix), ordered=False, as_of=as_of)

    def batches(
        self, prefix: Sequence[Any] | Key = (), as_of: AsOf | None = None
    ) -> Generator[pa.Table, None, None]:
        """The same in parts of at most 100,000 rows.

        All are of one cut, which is held until the last is taken.
        """
        self._wait(as_of)
        with open_cut(self._store, as_of) as cut:
            yield from cut.batches(self._check(cut), key_tuple(prefix))

    def to_spark(self, hold: float = 600.0, as_of: AsOf | None = None) -> DataFrame:
        """The same as a Spark DataFrame, read by Spark's tasks.

        It shows the cut at the time of this call, which is held for `hold` seconds.
        """
        self._wait(as_of)
        held = pins.hold(self._store, hold, as_of)
        cut = Cut(self._store, held.pin.epoch, held.pin.vector, held.state)
        return view_frame(self._store, self._spark(), self._check(cut), held.pin.epoch)

    def why(self, key: Key = (), as_of: AsOf | None = None) -> Why:
        """Which base rows make up the record under a key, which of them decide it, and what wrote
        them; or what is missing, if there is no record. It prints as a tree.
        """
        from belvedere.why import why  # which other readers do without

        self._wait(as_of)
        return in_cut(self._store, lambda cut: why(cut, cut.state.view(self.name), key), as_of)

    def changes(
        self,
        since: Epoch | None = None,
        follow: bool = False,
        timeout: float | None = None,
        consumer: str | None = None,
        keep_epochs: int | None = None,
        keep_seconds: float | None = None,
    ) -> Changes:
        """What every epoch after `since` changed, one Arrow table each: the view's columns,
        `_epoch` and `_weight`; with 0, or nothing, all rows come first, with weight +1.

        It ends with the committed epoch; with `follow` it waits for the next ones, if nothing
        changes for `timeout` seconds it ends. A named `consumer` goes on where `acknowledge()` was
        called last, and history is kept for it, as much as `keep_epochs` or `keep_seconds` allow.
        """
        if consumer is None and (keep_epochs is not None or keep_seconds is not None):
            raise SchemaError("history is kept for consumers that have a name: give consumer=")
        keep = None
        if keep_epochs is not None or keep_seconds is not None:
            keep = Keep(keep_epochs or 0, keep_seconds or 0.0)
        named = None if consumer is None else consumer_of(self._store, self.name, consumer, keep)
        self._wait(None)
        return Changes(self._store, self.name, since, follow, timeout, named)

    def problems(self) -> list[dict[str, Any]]:
        """Rows that the view cannot evaluate: their key and the expression that raises."""
        self._wait(None)
        return at_cut(self._store, lambda cut: problems(cut, cut.state.view(self.name)))

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def _rows(
        self,
        prefix: tuple[Any, ...],
        ordered: bool,
        limit: int | None = None,
        as_of: AsOf | None = None,
    ) -> pa.Table:
        self._wait(as_of)

        def read(cut: Cut) -> pa.Table:
            return cut.rows(self._check(cut), prefix, ordered, limit)

        return in_cut(self._store, read, as_of)

    def _wait(self, as_of: AsOf | None) -> None:
        """A reader of the past waits for nothing."""
        if self._before is not None and as_of is None:
            self._before()

    def _definition(self) -> ViewDefinition:
        return self._cache.state().view(self.name)

    def _prepared(self, point: _Point | None) -> _Point:
        """What is known anew when something has been committed; definitions change rarely."""
        mark, epoch, state = self._cache.current()
        read = (
            point[1]
            if point is not None and point[3] is state
            else point_read(self._store.state, self._readable(state))
        )
        return mark, read, epoch, state

    def _readable(self, state: CatalogState) -> ViewDefinition:
        view = state.view(self.name)
        status = state.status.get(view.id)
        if status is None or status.state != LIVE or state.in_error(view):
            check_readable(state, view, lambda v: self.problems())
        return view

    def _check(self, cut: Cut) -> ViewDefinition:
        view = cut.state.view(self.name)
        check_readable(cut.state, view, lambda v: problems(cut, v))
        return view
