"""Between the contract of sources and the machines: transactions in, questions out, answers in.

What travels of a relation are the columns of its member. A change that leaves them as they are is
none. Values to be joined go in chunks; an answer may have more rows than were asked for, as some
servers compare texts without regard to case, and the join compares again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from belvedere.libraries import pa
from belvedere.sources.base import (
    Answer,
    Question,
    Relation,
    RelationChange,
    Source,
    SourceTransaction,
)
from belvedere.warehouse.evaluation import Wanted
from belvedere.warehouse.machine import DELETE, INSERT, Transaction, Update
from belvedere.warehouse.processor import Found
from belvedere.warehouse.rows import Key, Member, Row, Shape, chunks

CHUNK = 10_000  # values in one question

Asked = tuple[int, Question]  # the member that it is for
# asks one source in other processes: an answer of its own for each question
AskFar = Callable[[Sequence[Question]], Sequence[Answer]]


def transaction_of(shape: Shape, source: str, told: SourceTransaction) -> Transaction:
    """A transaction of a source, as far as it concerns a view."""
    parts: tuple[str, ...] = ()
    if told.part is not None:
        parts = tuple(sorted(set(told.part.sources) & set(shape.sources)))
    is_global = len(parts) > 1
    return Transaction(
        told.transaction,
        source,
        told.position,
        tuple(_updates(shape, source, told.changes)),
        told.part.gid if told.part is not None and is_global else "",
        parts if is_global else (),
    )


def _updates(shape: Shape, source: str, changes: Sequence[RelationChange]) -> Iterator[Update]:
    """Deletions before insertions, so that a changed row is one of each."""
    for number, member in enumerate(shape.members):
        for change in changes:
            if (member.source, member.name) == (source, change.relation):
                before, after = (dict.fromkeys(rows_of(member, t)) for t in _sides(change))
                yield from (Update(DELETE, number, row) for row in before if row not in after)
                yield from (Update(INSERT, number, row) for row in after if row not in before)


def _sides(change: RelationChange) -> tuple[pa.Table, pa.Table]:
    return change.before, change.after


def rows_of(member: Member, table: pa.Table) -> list[Row]:
    return list(zip(*(values_of(table.column(name)) for name in member.columns), strict=True))


def values_of(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """NaN is always the same one, so that it equals itself, as in SQL."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [math.nan if value != value else value for value in values]
    return values


def questions(
    shape: Shape, relations: Mapping[int, Relation], wanted: Iterable[Wanted], size: int = CHUNK
) -> list[Asked]:
    """What a source is asked at once; `relations` are those of the members."""
    found: list[Asked] = []
    for one in wanted:
        member, relation = shape.members[one.member], relations[one.member]
        if one.values is None:
            found.append((one.member, Question(relation, member.columns)))
            continue
        fields = [relation.schema.arrow.field(member.columns[c]) for c in one.columns]
        for chunk in chunks([v for v in one.values if _fit(v, fields)], size):
            arrays = [
                pa.array([value[n] for value in chunk], field.type)
                for n, field in enumerate(fields)
            ]
            keys = pa.Table.from_arrays(arrays, names=[field.name for field in fields])
            found.append((one.member, Question(relation, member.columns, keys)))
    return found


def _fit(values: Key, fields: Sequence[pa.Field]) -> bool:
    """Whether columns can have such values: a BIGINT is joined with an INT."""
    return all(
        not pa.types.is_int32(field.type) or -(1 << 31) <= value < 1 << 31
        for value, field in zip(values, fields, strict=True)
    )


def is_far(asked: Iterable[Sequence[Asked]], size: int = CHUNK) -> bool:
    """Whether so many values are asked for that several tasks should do it."""
    keys = (q.keys for each in asked for _, q in each)
    return sum(len(k) for k in keys if k is not None) > size


def found_in(
    shape: Shape, asked: Sequence[Asked], answers: Sequence[Answer], source: Source
) -> Found:
    """The rows of answers, one for each question, read to their ends before anything else is asked.

    They may be of several moments. What all of them show is shown, and what one of them shows has
    to be received before they are used; then a row that two of them have as it was and as it is
    was changed by a transaction that compensates as if one answer had come after the change.
    """
    rows: dict[int, list[Row]] = {}
    for (member, _), answer in zip(asked, answers, strict=True):
        there = rows.setdefault(member, [])
        for table in (table for tables in answer.tables for table in tables):
            there += rows_of(shape.members[member], table)
    markers = dict.fromkeys(answer.marker for answer in answers)
    end = answers[0].end
    for answer in answers[1:]:
        end = end if source.covers(end, answer.end) else answer.end
    return Found(rows, lambda transaction: all(source.shows(m, transaction) for m in markers), end)
