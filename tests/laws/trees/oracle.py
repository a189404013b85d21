"""Trees of queries recomputed by DuckDB over the base rows of a cut.

The text is the plan's `checked`, translated from Spark's dialect by sqlglot; views that it reads
are put in its place, as what they are checked with. Only expressions that mean the same in both
dialects are generated. A row whose expression raises is NULL here; the engine says that such a view
is in error, and then nothing more is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.state import CatalogState
from belvedere.expressions import connect
from belvedere.sql.dialect import parse, sql_of
from belvedere.types import Schema

Row = tuple[Any, ...]


_engine = connect()  # one for all cases: making one takes longer than a case
_engine.execute("PRAGMA disable_optimizer")  # it costs more than it saves for a handful of rows


class Recomputation:
    """Answers of views over tables, each remembered until rows change."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self.schemas = schemas
        self._texts: dict[int, str] = {}
        self._answers: dict[int, list[Row]] = {}

    def close(self) -> None:
        for name in self.schemas:
            _engine.unregister(name)

    def put(self, tables: Mapping[str, Sequence[Row]]) -> None:
        """The rows of the cut."""
        self._answers.clear()
        for name, rows in tables.items():
            columns = self.schemas[name].columns
            arrays = [
                pa.array([row[i] for row in rows], c.type.arrow) for i, c in enumerate(columns)
            ]
            _engine.register(name, pa.table(arrays, names=[c.name for c in columns]))

    def rows(self, view: ViewDefinition, state: CatalogState) -> list[Row]:
        if view.id not in self._texts:
            self._texts[view.id] = recomputing(view, state)
        if view.id not in self._answers:
            self._answers[view.id] = answer(self._texts[view.id])
        return self._answers[view.id]


def answer(text: str) -> list[Row]:
    columns = [c.to_pylist() for c in _engine.sql(text).to_arrow_table().columns]
    return list(zip(*columns, strict=True))


def recomputing(view: ViewDefinition, state: CatalogState) -> str:
    """What DuckDB is asked: the view's query with the view's column types."""
    tree = _inlined(view, state)
    names = [f"c{i}" for i in range(len(view.schema.columns))]
    typed = ", ".join(
        f"CAST({n} AS {c.type.duckdb}) AS {n}"
        for n, c in zip(names, view.schema.columns, strict=True)
    )
    return f"SELECT {typed} FROM ({tree.sql(dialect='duckdb')}) AS checked({', '.join(names)})"


def _inlined(view: ViewDefinition, state: CatalogState) -> exp.Expr:
    tree: exp.Expr = parse(view.planned.checked)
    for table in list(tree.find_all(exp.Table)):
        other = state.views.get(table.name.lower())
        if other is not None:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
            joins = table.args.get("joins")  # of the parentheses around it
            table.replace(exp.Subquery(this=_inlined(other, state), alias=alias, joins=joins))
    return tree


def _drop_unused(written: exp.Expr, found: exp.Expr) -> None:
    """Take definitions out of `written` that `found` neither has nor needs."""
    kept = {cte.alias for cte in found.find_all(exp.CTE)} | {
        table.name for table in found.find_all(exp.Table)
    }
    for cte in [cte for cte in written.find_all(exp.CTE) if cte.alias not in kept]:
        around = cte.parent
        cte.pop()
        if around is not None and not around.expressions:
            around.pop()


def only_more_order(select: str, checked: str) -> bool:
    """Whether the text that is checked is the user's, except for columns added at the end of an
    ORDER BY and definitions in WITH that nothing uses, which are left out.

    QUALIFY, which Spark does not know, is written as a subquery; nothing is said about such a text.
    """
    if "QUALIFY" in select or select == checked:
        return True
    # as printed: DATE '...' is a cast then
    written, found = (parse(sql_of(parse(text))) for text in (select, checked))
    _drop_unused(written, found)
    orders = list(written.find_all(exp.Order)), list(found.find_all(exp.Order))
    if len(orders[0]) != len(orders[1]):
        return False
    for before, after in zip(*orders, strict=True):
        after.set("expressions", after.expressions[: len(before.expressions)])
    return bool(written == found)
