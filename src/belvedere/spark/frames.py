"""Views and tables as Spark DataFrames: each slot is read inside a task, nothing passes through the
driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.state import read_state
from belvedere.errors import Stale
from belvedere.libraries import pa
from belvedere.readers.cut import Cut
from belvedere.readers.rows import ViewRows
from belvedere.stores.base import Store
from belvedere.types import Epoch, Schema, Vector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches: TypeAlias = "Iterable[pa.RecordBatch]"


def map_in_arrow(
    frame: DataFrame, function: Callable[[Batches], Batches], schema: str
) -> DataFrame:
    """DataFrame.mapInArrow without its check for pandas, which Arrow tasks do not need
    (docs/decisions/003).
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    udf = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    return DataFrame(
        frame._jdf.mapInArrow(udf(*frame.columns)._jc, False, None), frame.sparkSession
    )


def spark_schema(schema: Schema) -> str:
    return ", ".join(f"`{c.name.replace('`', '``')}` {c.type.spark}" for c in schema.columns)


def view_frame(store: Store, spark: SparkSession, view: ViewDefinition, epoch: Epoch) -> DataFrame:
    """The view as of an epoch that the caller holds; a task that comes too late for it fails with
    Stale.
    """
    shape = ViewRows.of(view)

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        cut = Cut(store, epoch, Vector(), store.catalog.read(read_state))
        for batch in batches:
            for slot in batch.column(0).to_pylist():
                for keys, values in _slot(cut, view, slot):
                    yield from shape.decode(keys, values).to_batches()

    slots = spark.range(0, store.state.slots, 1, store.state.slots)
    return map_in_arrow(slots, task, spark_schema(view.schema))


def _slot(
    cut: Cut, view: ViewDefinition, slot: int
) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
    try:
        reader = cut.store.state.reader(slot, cut.epoch)
    except Stale as error:
        raise Stale(
            f"epoch {cut.epoch} is too old to be read: call to_spark() again, with a longer hold"
        ) from error
    try:
        yield from reader.scan(view.planned.sink.table)
    finally:
        reader.close()
