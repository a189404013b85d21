"""What a SQL statement answers: a message, rows, or a query that is run when its answer is asked
for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from belvedere.catalog import pins
from belvedere.catalog.history import AsOf
from belvedere.catalog.state import CatalogState, check_complete
from belvedere.encoding.ranges import EVERYTHING, Ranges
from belvedere.epochs.verify import table_frame
from belvedere.errors import Damaged, SqlError, Stale
from belvedere.prepared import keep_prepared, prepare
from belvedere.preview import SHOWN, as_text, preview
from belvedere.readers.base_rows import table_rows
from belvedere.readers.cut import Cut, at_cut, check_existed, in_cut
from belvedere.readers.keyed import keyed_of, read_at, readable_view
from belvedere.readers.lookups import Bound, RowLookup, has_single_rows
from belvedere.readers.ranges import LARGEST
from belvedere.spark.frames import view_frame
from belvedere.sql import query
from belvedere.sql.dialect import written
from belvedere.sql.parameters import Values
from belvedere.sql.rename import renamed
from belvedere.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from belvedere.database import Database


class Result(ABC):
    """Every statement answers with one of these."""

    @abstractmethod
    def to_arrow(self) -> pa.Table: ...

    def to_pylist(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def to_spark(self) -> DataFrame:
        raise SqlError("only a SELECT can be read as a DataFrame")


class Rows(Result):
    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def __repr__(self) -> str:
        left = self._table.num_rows - SHOWN
        return as_text(self._table) + (f"\n({left} more rows)" if left > 0 else "")


class Message(Result):
    """`text` says what was done."""

    def __init__(self, text: str) -> None:
        self.text = text

    def to_arrow(self) -> pa.Table:
        return pa.table({"result": [self.text]})

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class Query(Result):
    """A SELECT over tables and views, answered from one committed cut of all of them.

    A query that reads no view sees the tables as they are now; there is no cut that it could
    contradict.
    """

    def __init__(
        self,
        db: Database,
        statement: Any,
        values: Values | None = None,
        as_of: AsOf | None = None,
    ) -> None:
        """`values` are already in the statement; its text, which Spark reads, has parameters.

        With `as_of` it reads a cut of the past, tables too.
        """
        self._db, self._statement, self._values, self._as_of = db, statement, values, as_of
        self._names = query.relations(statement)
        state = db.state()
        found = {name.lower(): state.relation(name) for name in self._names}
        for relation in found.values():
            check_complete(state, relation)
        self._schemas: dict[str, Schema] = {n: relation.schema for n, relation in found.items()}

    def to_arrow(self) -> pa.Table:
        """The answer as an Arrow table, with Spark's types and rules.

        Of the relations only those keys are read that its conditions leave, and with a LIMIT only
        as much as gives enough rows. Where nothing is to compute, that is all; else DuckDB does it.
        """
        found = self._read()
        return self._answer(self._plan()) if found is None else found

    def _read(self) -> pa.Table | None:
        """The answer of a query that only reads; None if there is something to compute."""
        state = self._db.state()
        direct = query.direct(self._statement, self._keyed(state))
        if direct is None:
            return None
        is_lookup = direct.key is not None and self._as_of is None
        found = self._look_up(direct, state) if is_lookup else None
        return self._answer(_Reading(direct)) if found is None else found

    def _look_up(self, direct: query.Direct, state: CatalogState) -> pa.Table | None:
        """The row under the only key, if it can be read by itself; the next time without a plan."""
        if not has_single_rows(state, direct.relation):
            return None
        lookup = RowLookup(self._db.store, state, direct.relation, direct.columns, direct.schema)
        assert direct.key is not None
        self._prepare(direct, lookup)
        return _found(self._db, lookup, direct.key)

    def _prepare(self, direct: query.Direct, lookup: RowLookup) -> None:
        places = query.parameters_of_key(self._statement, direct) if self._values else None
        prepared = prepare(direct, lookup, places, len(self._values or ())) if places else None
        if prepared is not None:
            keep_prepared(self._db, written(self._statement), prepared)

    def _answer(self, plan: _Plan | _Reading) -> Any:
        def answer(cut: Cut) -> pa.Table | None:
            return plan.answer(partial(read_at, cut), cut.state)

        if self._as_of is not None:
            return in_cut(self._db.store, answer, self._as_of)
        if not self._reads_views():
            return self._now(plan)
        self._db.await_session()

        if plan.is_narrow and not self._db.store.read_only:
            # mostly done before an epoch ends; to hold the cut would cost more than to read it
            return at_cut(self._db.store, answer, tries=1)
        return in_cut(self._db.store, answer)

    def _plan(self) -> _Plan:
        translated = query.translate(self._statement, self._schemas)
        first = query.first_rows(self._statement)
        if first is not None and first.skipped:
            translated = query.translate(first.query, self._schemas)
        keyed = self._keyed(self._db.state())
        return _Plan(translated, keyed, query.ranges_in(self._statement, keyed), first)

    def _keyed(self, state: CatalogState) -> dict[str, query.Keyed]:
        return {name: keyed_of(state.relation(name)) for name in self._schemas}

    def _now(self, plan: _Plan | _Reading) -> Any:
        """The answer from tables as they are."""
        state = self._db.state()

        def read(name: str, ranges: Ranges, size: int) -> Iterator[pa.Table]:
            return table_rows(snapshot, state.readable(state.table(name)), ranges, size)

        with self._db.store.base.snapshot() as snapshot:
            if isinstance(plan, _Reading) or plan.first is not None:
                return plan.answer(read, state)
            tables = plan.load(read, state)
        return query.run(plan.translated, tables)

    def to_spark(self, hold: float = 600.0) -> DataFrame:
        """The same query run by Spark, for large answers; its cut is held for `hold` seconds."""
        if self._as_of is None:
            self._db.await_session()
        store, spark = self._db.store, self._db.spark
        held = pins.hold(store, hold, self._as_of)
        cut = Cut(store, held.pin.epoch, held.pin.vector, held.state)
        names = {}
        for name in self._schemas:
            table = cut.state.tables.get(name)
            if table is not None:
                check_existed(cut.state, cut.state.readable(table))
            frame = (
                table_frame(cut, spark, table)
                if table
                else view_frame(store, spark, readable_view(cut, name), cut.epoch)
            )
            # Spark's temporary views have plain names only
            names[name] = f"belvedere_{cut.epoch}_{cut.state.relation(name).id}"
            frame.createOrReplaceTempView(names[name])
        text = renamed(self._statement, names)
        return spark.sql(text, args=self._values) if self._values else spark.sql(text)

    def __repr__(self) -> str:
        return preview(self._db, self._statement, self._schemas, self._as_of)

    def _reads_views(self) -> bool:
        views = self._db.state().views
        return any(name in views for name in self._schemas)


class Lookup(Result):
    """A SELECT of the row under a key, which needs no plan; `planned` gives the query itself."""

    def __init__(
        self, db: Database, lookup: RowLookup, key: Bound, planned: Callable[[], Result]
    ) -> None:
        self._db, self._lookup, self._key, self._planned = db, lookup, key, planned

    def to_arrow(self) -> pa.Table:
        found = _found(self._db, self._lookup, self._key)
        return self._planned().to_arrow() if found is None else found

    def to_spark(self, hold: float = 600.0) -> DataFrame:
        planned = self._planned()
        assert isinstance(planned, Query)
        return planned.to_spark(hold)

    def __repr__(self) -> str:
        return repr(self._planned())


def _found(db: Database, lookup: RowLookup, key: Bound) -> pa.Table | None:
    """The row as an answer; None if it has to be read in another way, which says what is wrong."""
    if lookup.is_view:
        db.await_session()
    epoch, state = db.committed()
    if state is not lookup.state:
        return None
    try:
        return lookup.read(key, epoch)
    except (Stale, Damaged):
        return None


# rows of a relation by its name, whose keys are in some ranges, in batches that begin with a size
Read: TypeAlias = "Callable[[str, Ranges, int], Iterator[pa.Table]]"


@dataclass(frozen=True, slots=True)
class _Reading:
    """A query whose answer is what is read."""

    direct: query.Direct

    @property
    def is_narrow(self) -> bool:
        return True

    def answer(self, read: Read, state: CatalogState) -> pa.Table | None:
        """None if the relation was replaced since by another one."""
        direct = self.direct
        if keyed_of(state.relation(direct.relation)) != direct.keyed:
            return None
        empty = direct.keyed.schema.arrow.empty_table()
        found = pa.concat_tables([empty, *read(direct.relation, direct.ranges, LARGEST)])
        columns = [found.column(name) for name in direct.columns]
        return pa.table(columns, schema=direct.schema.arrow).slice(0, direct.count)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A translated query, and what it has to read: see `query.ranges_in` and `query.first_rows`."""

    translated: query.Translated
    keyed: Mapping[str, query.Keyed]
    ranges: Mapping[str, Ranges]
    first: query.FirstRows | None

    @property
    def is_narrow(self) -> bool:
        """Whether of every relation only a part is read."""
        return self.first is not None or len(self.ranges) == len(self.keyed)

    def answer(self, read: Read, state: CatalogState) -> pa.Table:
        if self.first is None:
            return query.run(self.translated, self.load(read, state))
        (name,) = self.keyed
        batches = read(name, self._of(name, state), min(self.first.batch, LARGEST))
        found = query.take(self.translated, name, batches, self.first.wanted)
        return found.slice(self.first.skipped, self.first.count)

    def load(self, read: Read, state: CatalogState) -> dict[str, pa.Table]:
        """All that the query needs of its relations."""
        return {name: self._whole(name, read, state) for name in self.keyed}

    def _whole(self, name: str, read: Read, state: CatalogState) -> pa.Table:
        empty = self.keyed[name].schema.arrow.empty_table()
        return pa.concat_tables([empty, *read(name, self._of(name, state), LARGEST)])

    def _of(self, name: str, state: CatalogState) -> Ranges:
        """What to read of a relation as it is now: if it was replaced since, by one with another
        key, the ranges say nothing of it.
        """
        is_same = keyed_of(state.relation(name)) == self.keyed[name]
        return self.ranges.get(name, EVERYTHING) if is_same else EVERYTHING
