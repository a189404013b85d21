"""What a SQL statement answers: a message, rows, or a query that is run when its answer is asked
for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from belvedere.catalog import pins
from belvedere.catalog.definitions import ViewDefinition
from belvedere.epochs.verify import table_frame
from belvedere.errors import SqlError
from belvedere.preview import SHOWN, as_text, preview
from belvedere.readers.base_rows import rows_at
from belvedere.readers.cut import Cut, check_readable, in_cut
from belvedere.readers.problems import problems
from belvedere.spark.frames import view_frame
from belvedere.sql import query
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

    def __init__(self, db: Database, statement: Any) -> None:
        self._db, self._statement = db, statement
        self._names = query.relations(statement)
        state = db.state()
        self._schemas: dict[str, Schema] = {
            name.lower(): state.relation(name).schema for name in self._names
        }

    def to_arrow(self) -> pa.Table:
        """The answer as an Arrow table, computed by DuckDB with Spark's types and rules."""
        translated = query.translate(self._statement, self._schemas)
        if not self._reads_views():
            return query.run(translated, {n: self._db.table(n).to_arrow() for n in self._schemas})
        self._db.await_session()
        return in_cut(
            self._db.store,
            lambda cut: query.run(
                translated, {name: self._relation(cut, name) for name in self._schemas}
            ),
        )

    def to_spark(self, hold: float = 600.0) -> DataFrame:
        """The same query run by Spark, for large answers; its cut is held for `hold` seconds."""
        self._db.await_session()
        store, spark = self._db.store, self._db.spark
        held = pins.hold(store, hold)
        cut = Cut(store, held.pin.epoch, held.pin.vector, held.state)
        names = {}
        for name in self._schemas:
            table = cut.state.tables.get(name)
            frame = (
                table_frame(cut, spark, table)
                if table
                else view_frame(store, spark, _readable(cut, name), cut.epoch)
            )
            # Spark's temporary views have plain names only
            names[name] = f"belvedere_{cut.epoch}_{cut.state.relation(name).id}"
            frame.createOrReplaceTempView(names[name])
        return spark.sql(renamed(self._statement, names))

    def __repr__(self) -> str:
        return preview(self._db, self._statement, self._schemas)

    def _reads_views(self) -> bool:
        views = self._db.state().views
        return any(name in views for name in self._schemas)

    def _relation(self, cut: Cut, name: str) -> pa.Table:
        table = cut.state.tables.get(name)
        if table is not None:
            return pa.concat_tables(
                [
                    table.schema.arrow.empty_table(),
                    *rows_at(cut.store, table, cut.epoch, cut.vector),
                ]
            )
        return cut.rows(_readable(cut, name))


def _readable(cut: Cut, name: str) -> ViewDefinition:
    view = cut.state.view(name)
    check_readable(cut.state, view, lambda v: problems(cut, v))
    return view
