"""A data source for Spark: `spark.read.format("belvedere").option("db", PATH).load("view")`.

    read         a view or table at one cut, a partition per slot
    readStream   the changes of a view; an offset is an epoch, so with a checkpoint every change is
                 there exactly once (`option("changes", "true")`)
    write        rows are put into a table; a task that is tried again puts the same rows again

Rows travel as Arrow batches. Spark does not tell a Python data source which columns a query uses,
so `option("columns", "a, b")` says it: others do not leave the worker that reads them. With
`option("pushdown", "true")` filters on leading columns of the key narrow what is read, and Spark
applies them again; Spark refuses a source that could do that in a session without
`spark.sql.python.filterPushdown.enabled`, so it has to be asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    Filter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from belvedere.catalog import pins
from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.catalog.history import AsOf, check_consumer_name
from belvedere.catalog.state import CatalogState, committed, read_state
from belvedere.encoding.ranges import EVERYTHING, Ranges
from belvedere.errors import HistoryGone, SchemaError, Stale, StoreError
from belvedere.libraries import pa
from belvedere.readers.cut import Cut
from belvedere.readers.feed import (
    Step,
    ViewChanges,
    check_same,
    check_start,
    check_view,
    feed_schema,
    follow_from,
    steps_between,
)
from belvedere.readers.keyed import keyed_of, read_slot, readable_view
from belvedere.spark.frames import spark_schema
from belvedere.spark.pushdown import ranges_of_filters
from belvedere.stores.base import Store
from belvedere.stores.registry import exists, open_shared
from belvedere.types import Epoch, Schema, Vector

_HOLD = 3600.0  # seconds for which the cut of a read is held
_OPTIONS = {
    "reads": ("db", "path", "asOf", "columns", "hold", "pushdown", "changes"),
    "streams of changes": ("db", "path", "changes", "since", "consumer"),
    "writes": ("db", "path"),
    "streams of writes": ("db", "path", "checkpointLocation"),
}


def _store(url: str) -> Store:
    if not exists(url):
        raise StoreError(f"there is no database at {url}: give option('db', PATH) its path")
    return open_shared(url)


class BelvedereSource(DataSource):
    """Options: `db`, the path or URL of a database; `path`, the view or table, which `load` takes;
    `asOf`, an epoch or a moment; `columns`, those that are wanted; `hold`, seconds; `changes` with
    `since` and `consumer` for change feeds.
    """

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._check_options("this format", tuple(n for names in _OPTIONS.values() for n in names))
        for needed, how in (("db", "option('db', PATH)"), ("path", "load('view')")):
            if not options.get(needed):
                raise SchemaError(f"the option {needed!r} is missing: give {how}")

    @classmethod
    def name(cls) -> str:
        return "belvedere"

    def _check_options(self, use: str, known: Sequence[str]) -> None:
        lower = {name.lower() for name in known}
        unknown = sorted(set(map(str.lower, self.options)) - lower)
        if unknown:
            names = ", ".join(dict.fromkeys(known))
            raise SchemaError(f"{use} has no option {unknown[0]!r}: the options are {names}")

    def _check_use(self, use: str) -> None:
        """What would not be obeyed is refused."""
        self._check_options(f"the format for {use}", _OPTIONS[use])

    def _is_true(self, name: str) -> bool:
        text = self.options.get(name, "false").lower()
        if text not in ("true", "false"):
            raise SchemaError(f"{name} is true or false, not {text!r}")
        return bool(text == "true")

    @property
    def _changes(self) -> bool:
        return self._is_true("changes")

    @property
    def _place(self) -> Place:
        return Place(self.options["db"], self.options["path"])

    def schema(self) -> str:
        found = self._place.relation()
        if self._changes:
            return spark_schema(feed_schema(_view(found)))
        return spark_schema(self._read_schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._changes:
            raise SchemaError("changes are read as a stream: use spark.readStream")
        self._check_use("reads")
        wanted = self._read_schema()
        if schema.names != list(wanted.names):
            raise SchemaError(
                "the columns are those of the view or table: give option('columns', 'a, b') for"
                " some of them, and no schema"
            )
        kind = _PushingReader if self._is_true("pushdown") else _Reader
        as_of = _as_of(self.options.get("asof"))
        return kind(self._place, as_of, self._seconds(), wanted.names)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if not self._changes:
            raise SchemaError("a stream is a feed of changes: give option('changes', 'true')")
        self._check_use("streams of changes")
        since = _number("since", self.options.get("since", "0"))
        consumer = self.options.get("consumer")
        if consumer is not None:
            check_consumer_name(consumer)
        return _StreamReader(self._place, since, consumer)

    def _read_schema(self) -> Schema:
        """The columns that a read gives, in the order in which they are asked for."""
        schema = self._place.relation().schema
        text = self.options.get("columns")
        if text is None:
            return schema
        known = {column.name.lower(): column for column in schema.columns}
        names = [name.strip() for name in text.split(",")]
        for name in names:
            if name.lower() not in known:
                raise SchemaError(
                    f"{self._place.name} has no column {name!r}: it has {', '.join(schema.names)}"
                )
        chosen = tuple(known[name.lower()] for name in names)
        twice = [column.name for number, column in enumerate(chosen) if column in chosen[:number]]
        if twice:
            raise SchemaError(f"columns names {twice[0]} twice: name each column once")
        return Schema(chosen)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        self._check_use("writes")
        self._check_written(overwrite)
        return _Writer(self._place)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        self._check_use("streams of writes")
        self._check_written(overwrite)
        return _StreamWriter(self._place)

    def _check_written(self, overwrite: bool) -> None:
        if overwrite:
            raise SchemaError("rows are put by their key, nothing is overwritten: use append")
        if isinstance(self._place.relation(), ViewDefinition):
            raise SchemaError(f"{self._place.name} is a view: it is maintained, not written to")

    def _seconds(self) -> float:
        return float(_number("hold", self.options.get("hold", str(int(_HOLD)))))


@dataclass(frozen=True, slots=True)
class Place:
    """A relation of a database, by name: what Spark sends to its workers."""

    url: str
    name: str

    @property
    def store(self) -> Store:
        return _store(self.url)

    def relation(self) -> TableDefinition | ViewDefinition:
        return self.store.catalog.read(read_state).relation(self.name)


def _view(found: TableDefinition | ViewDefinition) -> ViewDefinition:
    if isinstance(found, TableDefinition):
        raise SchemaError(f"{found.name} is a table: only views have changes here")
    return found


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise SchemaError(f"{name} is a whole number, not {text!r}")
    return int(text)


def _as_of(text: str | None) -> AsOf | None:
    from belvedere.sql.versions import as_of_text

    return None if text is None else as_of_text(text)


# ---------------------------------------------------------------- reading a cut


@dataclass
class _Slot(InputPartition):
    slot: int
    epoch: Epoch
    vector: dict[str, int]
    # as it was when the read was planned: its name may stand for another one when a task begins
    relation: TableDefinition | ViewDefinition


class _Reader(DataSourceReader):
    def __init__(
        self, place: Place, as_of: AsOf | None, seconds: float, columns: tuple[str, ...]
    ) -> None:
        self._place, self._as_of, self._seconds = place, as_of, seconds
        self._columns = list(columns)
        self._ranges: Ranges = EVERYTHING

    def partitions(self) -> Sequence[InputPartition]:
        store = self._place.store
        held = pins.hold(store, self._seconds, self._as_of)
        cut = Cut(store, held.pin.epoch, held.pin.vector, held.state)
        found = held.state.relation(self._place.name)
        if isinstance(found, ViewDefinition):
            readable_view(cut, self._place.name)
        else:
            found = held.state.readable(found)
        vector = held.pin.vector.to_json()
        return [_Slot(slot, cut.epoch, vector, found) for slot in range(store.state.slots)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Slot)
        store = self._place.store
        state = _at(store.catalog.read(read_state), partition.epoch)
        cut = Cut(store, partition.epoch, Vector(partition.vector), state)
        try:
            for table in read_slot(cut, partition.relation, partition.slot, self._ranges):
                yield from table.select(self._columns).to_batches()
        except Stale as error:
            raise Stale(
                f"epoch {cut.epoch} is too old to be read: read again, and give option('hold',"
                " SECONDS) as long as the read takes"
            ) from error


class _PushingReader(_Reader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """All of them are Spark's to apply: those on the key say what need not be read."""
        self._ranges = ranges_of_filters(filters, keyed_of(self._place.relation()))
        yield from filters


def _at(state: CatalogState, epoch: Epoch) -> CatalogState:
    """Names as they are; what the driver has checked is not checked again."""
    return replace(state, head=replace(state.head, epoch=epoch))


# ---------------------------------------------------------------- following changes


@dataclass
class _SlotChanges(InputPartition):
    slot: int
    steps: tuple[Step, ...]  # or none: all rows
    epoch: Epoch


@contextmanager
def _begin_again() -> Iterator[None]:
    """What a stream can do when history is gone."""
    try:
        yield
    except HistoryGone as error:
        hint = "A stream with a new checkpoint begins with all rows"
        raise HistoryGone(f"{error}. {hint}", error.oldest) from error


class _StreamReader(DataSourceStreamReader):
    """Offsets are epochs; 0 is before all rows. What is read between two of them depends on nothing
    else, so a batch that is run again is the same; or it is refused, if what it was planned over
    is not kept, or not this view's.
    """

    def __init__(self, place: Place, since: Epoch, consumer: str | None) -> None:
        self._place, self._since, self._consumer = place, since, consumer
        self._view = _view(place.relation())
        self._pin = ""  # of the batch that is being read

    def initialOffset(self) -> dict[str, int]:
        return {"epoch": self._since}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        store, low = self._place.store, start["epoch"]
        newest = committed(store).epoch
        if newest < low:
            raise SchemaError(
                f"the stream begins after epoch {low}, and the newest one that is committed is"
                f" {newest}: is this the database of its checkpoint? If a backup was restored, or"
                " for option('since', ...), begin with a new checkpoint"
            )
        if newest == low:
            return start
        with _begin_again(), pins.pinned(store) as held:
            check_same(held.state, self._view)
            check_start(held.state, self._view, low)
            check_view(store, held, self._view)
            if not low:
                self._keep(held.pin.epoch)
        return {"epoch": held.pin.epoch}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        store, low, high = self._place.store, start["epoch"], end["epoch"]
        if low >= high:
            return []
        self._let_go()
        with _begin_again():
            held = pins.hold(store, _HOLD, low or high)
            self._pin = held.key
            try:
                steps = self._steps(held, low, high)
            except BaseException:  # whatever it was, there is no batch that needs it
                self._let_go()
                raise
        return [_SlotChanges(slot, steps, high) for slot in range(store.state.slots)]

    def _steps(self, held: pins.Held, low: Epoch, high: Epoch) -> tuple[Step, ...]:
        check_same(held.state, self._view)
        check_start(held.state, self._view, low)
        check_view(self._place.store, held, self._view)
        if not low:
            return ()
        return tuple(steps_between(self._place.store, _at(held.state, high), self._view, low))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _SlotChanges)
        changes = ViewChanges(self._place.store, self._view)
        if not partition.steps:
            for table in changes.all_of_slot(partition.slot, partition.epoch):
                yield from table.to_batches()
        for step in partition.steps:
            for table in changes.of_slot(partition.slot, step):
                yield from table.to_batches()

    def commit(self, end: dict[str, int]) -> None:
        self._keep(end["epoch"])
        self._let_go()

    def _keep(self, epoch: Epoch) -> None:
        """What comes after an epoch is kept for the consumer, if it has a name."""
        if self._consumer is not None:
            follow_from(self._place.store, self._view, self._consumer, epoch)

    def _let_go(self) -> None:
        pins.remove(self._place.store, self._pin)
        self._pin = ""

    def stop(self) -> None:
        self._let_go()


# ---------------------------------------------------------------- writing


def _put(place: Place, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    """Puts by key: a task that is tried again, or twice at once, changes nothing more."""
    from belvedere.table import Table

    table = Table(place.store, place.store.catalog.read(read_state).table(place.name))
    for batch in batches:
        table.put_many(pa.Table.from_batches([batch]))
    return WriterCommitMessage()


class _Writer(DataSourceArrowWriter):
    def __init__(self, place: Place) -> None:
        self._place = place

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _put(self._place, iterator)


class _StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, place: Place) -> None:
        self._place = place

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _put(self._place, iterator)

    def commit(self, messages: Any, batchId: int) -> None:
        """Rows are in the log since their task wrote them."""

    def abort(self, messages: Any, batchId: int) -> None:
        """Rows that were put stay; the batch is run again and puts the same."""


def register(spark: SparkSession) -> None:
    """Let a session use `format("belvedere")`.

    Where Belvedere is installed for Spark's workers, Spark finds it by itself.
    """
    spark.dataSource.register(BelvedereSource)
