"""Questions to sources in tasks of Spark: what many values of a join find is read by several
processes, each with a connection of its own that it keeps.

Secrets are read where the connection is made. What is wrong with a source is told as an answer, as
Spark would only pass on its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from belvedere.catalog.source_definition import SourceDefinition
from belvedere.errors import SourceError, SourceLost, SourceUnreachable
from belvedere.libraries import pa
from belvedere.sources.base import Answer, Question, Source

if TYPE_CHECKING:
    from belvedere.spark.frames import Batches

Connect: TypeAlias = Callable[[SourceDefinition], Source]

ANSWER = "number int, marker string, end string, rows binary, kind string, message string"
_ERRORS = {kind.__name__: kind for kind in (SourceError, SourceLost, SourceUnreachable)}
_ARROW = pa.schema(
    [
        ("number", pa.int32()),
        ("marker", pa.string()),
        ("end", pa.string()),
        ("rows", pa.binary()),
        ("kind", pa.string()),
        ("message", pa.string()),
    ]
)
_open: dict[bytes, Source] = {}  # of a worker process


def asking(
    connect: Connect, definition: SourceDefinition, questions: Sequence[Question]
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """A task asks the questions that have the numbers it is given."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                told = _asked(connect, definition, questions, number)
                yield pa.RecordBatch.from_pylist([told], _ARROW)

    return task


def _asked(
    connect: Connect, definition: SourceDefinition, questions: Sequence[Question], number: int
) -> dict[str, Any]:
    try:
        answer = _source(connect, definition).ask([questions[number]])
        (tables,) = answer.tables
        rows = pa.concat_tables(tables)
    except SourceError as error:
        kind = next(k for k in type(error).__mro__ if k.__name__ in _ERRORS)
        return {"number": number, "kind": kind.__name__, "message": str(error)}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    told = {"number": number, "marker": answer.marker, "end": answer.end}
    return {**told, "rows": sink.getvalue().to_pybytes()}


def _source(connect: Connect, definition: SourceDefinition) -> Source:
    key = definition.to_bytes()
    if key not in _open:
        _open[key] = connect(definition)
    return _open[key]


def answers_of(rows: Iterable[Any]) -> list[Answer]:
    """In the order of their questions. Raises what was wrong with the source."""
    found = sorted(rows, key=lambda row: int(row["number"]))
    for row in found:
        if row["kind"] is not None:
            raise _ERRORS[row["kind"]](row["message"])
    return [
        Answer(row["marker"], row["end"], (iter([pa.ipc.open_stream(row["rows"]).read_all()]),))
        for row in found
    ]
