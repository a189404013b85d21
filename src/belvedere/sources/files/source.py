"""Files as a `Source`: one relation, whose log are the differences of its snapshots.

Positions, markers and names of transactions are numbers of snapshots.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from belvedere.errors import SourceError, SourceLost
from belvedere.libraries import pa
from belvedere.sources.base import Answer, Lag, Monitor, Question, Relation
from belvedere.sources.files.following import FileMonitor
from belvedere.sources.files.options import Options
from belvedere.sources.files.reading import OtherColumns, connect, look, quoted, schema_of
from belvedere.sources.files.snapshots import Snapshot, Snapshots
from belvedere.types import Schema

_ROWS = 50_000  # in one table of an answer


class FileSource:
    kind = "files"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._snapshots = Snapshots(options)
        self._taking = threading.Lock()

    def relations(self) -> list[str]:
        return [self._options.relation]

    def describe(self, name: str) -> Relation:
        self._check_name(name)
        return Relation(name, schema_of(self._options, look(self._options)), needs_copy=True)

    def _check_name(self, name: str) -> None:
        if name != self._options.relation:
            raise SourceError(
                f"there is no relation {name!r} in these files: theirs is {self._options.relation}"
            )

    def prepare(self, relations: Sequence[Relation]) -> str:
        """The first snapshot, or the one that shows the files as they are."""
        for relation in relations:
            self._check_name(relation.name)
            try:
                self._take(relation.schema)
            except OtherColumns as error:
                raise SourceError(
                    f"{error}: name the relation again, with its columns of now"
                ) from error
        return str(max(self._snapshots.numbers(), default=0))

    def _take(self, schema: Schema) -> Snapshot:
        with self._taking:
            return self._snapshots.take(schema)

    def follow(self, relations: Sequence[Relation], position: str) -> Monitor:
        number = _number(position)
        if relations and number not in self._snapshots.numbers():
            raise SourceLost(
                f"the snapshot {number} of {self._options.path} is not kept in"
                f" {self._options.kept}: load its relation again"
            )
        return FileMonitor(self._options, self._snapshots, relations, number)

    def position(self) -> str:
        """What was written to the files before this call is in the snapshot that it names. Files
        with other columns are in none: their relation stops.
        """
        latest = self._snapshots.latest()
        if latest is None:
            return "0"
        try:
            return str(self._take(latest.schema).number)
        except OtherColumns:
            return str(latest.number)

    def covers(self, position: str, other: str) -> bool:
        return _number(position) >= _number(other)

    def ask(self, questions: Sequence[Question]) -> Answer:
        """From the latest snapshot, never from the files: they are ahead of what was followed."""
        with self._snapshots.locked():
            latest = self._snapshots.latest()
            if latest is None:
                raise SourceError(
                    f"there is no snapshot of {self._options.path} yet: prepare the source first"
                )
            # Open before another process may forget it: an open file stays.
            tables = tuple(_rows(latest, question) for question in questions)
        number = str(latest.number)
        return Answer(number, number, tables)

    def shows(self, marker: str, transaction: str) -> bool:
        return _number(transaction) <= _number(marker)

    def lag(self, position: str) -> Lag:
        sizes = self._snapshots.sizes()
        behind = sum(size for number, size in sizes.items() if number > _number(position))
        return Lag(behind, sum(sizes.values()))

    def remove(self) -> None:
        self._snapshots.remove()

    def close(self) -> None:
        """Nothing is open between calls."""


def _number(text: str) -> int:
    if not text.isdecimal():
        raise SourceError(f"{text!r} is no number of a snapshot")
    return int(text)


def _rows(snapshot: Snapshot, question: Question) -> Iterator[pa.Table]:
    import pyarrow.parquet

    columns = list(question.names)
    needed = sorted({*columns, *(question.keys.column_names if question.keys is not None else ())})
    handle = pa.OSFile(str(snapshot.path))
    file = pyarrow.parquet.ParquetFile(handle)

    def read() -> Iterator[pa.Table]:
        with handle:
            for batch in file.iter_batches(_ROWS, columns=needed):
                found = pa.Table.from_batches([batch])
                if question.keys is not None:
                    found = _that_agree(found, question.keys)
                chosen = found.select(columns)
                if len(chosen):
                    yield chosen.cast(_arrow(snapshot.schema, columns))

    return read()


def _that_agree(rows: pa.Table, keys: pa.Table) -> pa.Table:
    on = " AND ".join(f"r.{quoted(name)} = k.{quoted(name)}" for name in keys.column_names)
    with connect() as connection:
        connection.register("these_rows", rows)
        connection.register("these_keys", _without_zones(keys))
        query = f"SELECT r.* FROM these_rows r SEMI JOIN these_keys k ON {on}"
        return connection.sql(query).to_arrow_table()


def _without_zones(keys: pa.Table) -> pa.Table:
    """As the rows of snapshots are: moments as times of UTC."""
    types = (pa.timestamp("us") if pa.types.is_timestamp(t) else t for t in keys.schema.types)
    return keys.cast(pa.schema(list(zip(keys.column_names, types, strict=True))))


def _arrow(schema: Schema, columns: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.arrow.field(name) for name in columns])
