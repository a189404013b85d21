"""Verify: recompute a view from its base table with Spark SQL, as of one epoch, and compare.

    missing      the recomputation has the row, the view has not
    extra        the view has it, the recomputation has not
    different    both have the key, with different values

The two engines check each other: views are maintained with DuckDB and Arrow, the recomputation runs
the user's own text in Spark. Doubles are compared with a relative tolerance, because Spark adds
them in an order of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.errors import PipelineError, ViewInError
from belvedere.readers.base_rows import rows_at
from belvedere.readers.cut import Cut, check_readable, open_cut
from belvedere.readers.problems import problems
from belvedere.spark.frames import Batches, map_in_arrow, spark_schema, view_frame
from belvedere.sql.dialect import parse
from belvedere.sql.query import relations
from belvedere.sql.rename import renamed
from belvedere.stores.base import Store
from belvedere.types import Epoch, SqlType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOLERANCE = 1e-9
SHOWN = 1000
_OURS = re.compile(r"^belvedere\.errors\.\w+: (.+?)\.?$", re.MULTILINE)  # of a task, in its report


@dataclass(frozen=True, slots=True)
class Difference:
    kind: str  # missing, extra or different
    expected: dict[str, Any] | None
    found: dict[str, Any] | None
    times: int = 1  # for counted rows: by how many


@dataclass(frozen=True, slots=True)
class Verification:
    view: str
    epoch: Epoch
    rows: int
    counts: dict[str, int]
    differences: tuple[Difference, ...]  # at most SHOWN
    problem: str = ""

    @property
    def ok(self) -> bool:
        return not self.problem and not sum(self.counts.values())


def verify(store: Store, spark: SparkSession, name: str) -> Verification:
    with open_cut(store) as cut:
        view = cut.state.view(name)
        try:
            check_readable(cut.state, view, lambda v: problems(cut, v))
        except ViewInError as error:
            return Verification(view.name, cut.epoch, 0, {}, (), str(error))
        return compare(cut, spark, view)


def compare(cut: Cut, spark: SparkSession, view: ViewDefinition) -> Verification:
    from pyspark.errors import PySparkException

    try:
        return _compare(cut, spark, view)
    except PySparkException as error:
        ours = _OURS.search(str(error))
        if ours is None:
            raise
        raise PipelineError(
            f"view {view.name} is not verified: {ours[1]}. If only what the view keeps is damaged,"
            f" belvedere rebuild {view.name} builds it anew"
        ) from error


def _compare(cut: Cut, spark: SparkSession, view: ViewDefinition) -> Verification:
    expected = recomputed(cut, spark, view)
    found = view_frame(cut.store, spark, view, cut.epoch)
    # whatever the view calls them
    numbered = [frame.toDF(*_columns(view)) for frame in (expected, found)]
    differing = (_by_key if view.planned.unique else _by_row)(spark, view, *numbered).cache()
    try:
        counts = {row["kind"]: row["count"] for row in differing.groupBy("kind").count().collect()}
        shown = tuple(
            _difference(view, row.asDict(recursive=True))
            for row in differing.limit(SHOWN).collect()
        )
        rows = found.count()
    finally:
        differing.unpersist()
    return Verification(view.name, cut.epoch, rows, counts, shown)


def recomputed(cut: Cut, spark: SparkSession, view: ViewDefinition) -> DataFrame:
    """The view's own SELECT, run by Spark over the base rows of the cut; views that it reads are
    recomputed too.
    """
    from pyspark.errors import PySparkException

    query = parse(view.planned.checked)
    names = {}
    for name in relations(query):
        table = cut.state.tables.get(name.lower())
        other = cut.state.views.get(name.lower())
        names[name] = (
            f"belvedere_base_{table.id}"
            if table
            else f"belvedere_view_{other.id}"
            if other
            else name
        )
        if table is not None:
            table_frame(cut, spark, table).createOrReplaceTempView(names[name])
        elif other is not None:
            recomputed(cut, spark, other).createOrReplaceTempView(names[name])
    try:
        return spark.sql(renamed(query, names)).toDF(*view.schema.names)
    except PySparkException as error:
        raise not_recomputed(view.name, error) from error


def not_recomputed(view: str, error: Exception) -> PipelineError:
    """Spark does not understand the SELECT, although we do; its reason without the plan and the
    stack below it.
    """
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    what = (
        f"view {view} is not verified, because Spark could not recompute it: {reason.rstrip(';.')}"
    )
    return PipelineError(f"{what}. Create it anew with a SELECT that Spark accepts")


def table_frame(cut: Cut, spark: SparkSession, table: TableDefinition) -> DataFrame:
    """A base table at a cut, read inside a task."""
    store, epoch, vector = cut.store, cut.epoch, cut.vector
    table = cut.state.readable(table)

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        for rows in rows_at(store, table, epoch, vector):
            yield from rows.to_batches()

    return map_in_arrow(spark.range(0, 1, 1, 1), task, spark_schema(table.schema))


def _by_key(
    spark: SparkSession, view: ViewDefinition, expected: DataFrame, found: DataFrame
) -> DataFrame:
    columns = _columns(view)
    match = (
        " AND ".join(
            f"e.{c} <=> f.{c}"
            for c in (columns[view.schema.names.index(name)] for name in view.schema.key)
        )
        or "true"
    )
    same = " AND ".join(
        _equal(f"e.{c}", f"f.{c}", column.type)
        for c, column in zip(columns, view.schema.columns, strict=True)
    )
    row = {side: f"struct({', '.join(f'{side}.{c}' for c in columns)})" for side in "ef"}
    expected.selectExpr("*", "1 AS _here").createOrReplaceTempView("belvedere_expected")
    found.selectExpr("*", "1 AS _here").createOrReplaceTempView("belvedere_found")
    return spark.sql(
        "SELECT CASE WHEN f._here IS NULL THEN 'missing' WHEN e._here IS NULL THEN 'extra' ELSE"
        f" 'different' END AS kind, IF(e._here IS NULL, NULL, {row['e']}) AS expected, IF(f._here"
        f" IS NULL, NULL, {row['f']}) AS found, 1L AS times FROM belvedere_expected e FULL OUTER"
        f" JOIN belvedere_found f ON {match} WHERE e._here IS NULL OR f._here IS NULL OR NOT"
        f" ({same})"
    )


def _by_row(
    spark: SparkSession, view: ViewDefinition, expected: DataFrame, found: DataFrame
) -> DataFrame:
    listed = ", ".join(_columns(view))
    rounded = _rounded(view)
    expected.selectExpr(*rounded).createOrReplaceTempView("belvedere_expected")
    found.selectExpr(*rounded).createOrReplaceTempView("belvedere_found")
    return spark.sql(
        f"SELECT IF(times > 0, 'missing', 'extra') AS kind, IF(times > 0, struct({listed}), NULL)"
        f" AS expected, IF(times < 0, struct({listed}), NULL) AS found, abs(times) AS times FROM"
        f" (SELECT {listed}, sum(w) AS times FROM (SELECT {listed}, 1L AS w FROM belvedere_expected"
        f" UNION ALL SELECT {listed}, -1L AS w FROM belvedere_found) GROUP BY {listed}) WHERE times"
        " <> 0"
    )


def _rounded(view: ViewDefinition) -> list[str]:
    """Rows without a key are compared as a whole, so computed doubles are first rounded to single
    precision.
    """
    aggregated = any(n.operator.adds_doubles for n in view.planned.nodes)
    named = zip(_columns(view), view.schema.columns, strict=True)
    return [
        (
            f"CAST(CAST({c} AS FLOAT) AS DOUBLE) AS {c}"
            if aggregated and column.type.name == "double"
            else c
        )
        for c, column in named
    ]


def _equal(left: str, right: str, kind: SqlType) -> str:
    if kind.name != "double":
        return f"{left} <=> {right}"
    close = f"abs({left} - {right}) <= {TOLERANCE}D * greatest(abs({left}), abs({right}))"
    return f"({left} <=> {right} OR coalesce({close}, false))"


def _columns(view: ViewDefinition) -> list[str]:
    """Names that need no quotes and are not ours."""
    return [f"c{number}" for number in range(len(view.schema.columns))]


def _difference(view: ViewDefinition, row: dict[str, Any]) -> Difference:
    expected, found = (
        side and dict(zip(view.schema.names, side.values(), strict=True))
        for side in (row["expected"], row["found"])
    )
    return Difference(row["kind"], expected, found, int(row["times"]))
