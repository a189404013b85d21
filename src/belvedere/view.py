"""A view as its readers see it: always the committed epoch, the same cut as every other view."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from belvedere.catalog import pins
from belvedere.catalog.definitions import LIVE, ViewDefinition
from belvedere.catalog.state import CatalogState
from belvedere.errors import Stale
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

    def get(self, key: Key = ()) -> Row | None:
        """The row under a key (a scalar, or a tuple for keys of several columns), or None."""
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

    def scan(self, prefix: Sequence[Any] | Key = (), limit: int | None = None) -> Iterator[Row]:
        """Rows in key order, all or those whose key begins with `prefix`."""
        table = self._rows(key_tuple(prefix), ordered=True, limit=check_limit(limit))
        yield from (table if limit is None else table.slice(0, limit)).to_pylist()

    def to_arrow(self, prefix: Sequence[Any] | Key = ()) -> pa.Table:
        """All rows that the view's SELECT would return, duplicates included, in no particular
        order.
        """
        return self._rows(key_tuple(prefix), ordered=False)

    def batches(self, prefix: Sequence[Any] | Key = ()) -> Generator[pa.Table, None, None]:
        """The same in parts of at most 100,000 rows.

        All are of one cut, which is held until the last is taken.
        """
        if self._before is not None:
            self._before()
        with open_cut(self._store) as cut:
            yield from cut.batches(self._check(cut), key_tuple(prefix))

    def to_spark(self, hold: float = 600.0) -> DataFrame:
        """The same as a Spark DataFrame, read by Spark's tasks.

        It shows the cut at the time of this call, which is held for `hold` seconds.
        """
        if self._before is not None:
            self._before()
        held = pins.hold(self._store, hold)
        return view_frame(self._store, self._spark(), self._readable(held.state), held.pin.epoch)

    def problems(self) -> list[dict[str, Any]]:
        """Rows that the view cannot evaluate: their key and the expression that raises."""
        return at_cut(self._store, lambda cut: problems(cut, cut.state.view(self.name)))

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def _rows(self, prefix: tuple[Any, ...], ordered: bool, limit: int | None = None) -> pa.Table:
        if self._before is not None:
            self._before()
        return in_cut(self._store, lambda cut: cut.rows(self._check(cut), prefix, ordered, limit))

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
