"""The end of a view: the last Select, and the sink under the view's key.

    what makes a row unique is among the columns     KeyedSink   one record per key
    and the user named other columns as the key      Arrange     rows under that key: an index,
                                                                 which a join may share
    otherwise                                        BagSink     equal rows are counted

A sink whose key is what its input is partitioned by needs no exchange; any other gets one of its
own (rule R8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.errors import SqlError
from belvedere.operators.arrange import Arrange
from belvedere.operators.select import IDENTITY
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.sql.names import check_names
from belvedere.sql.plan.context import Context, Planned
from belvedere.sql.plan.joining import check_bounded
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.relation import Relation, Value, sort_values
from belvedere.types import DOUBLE, Column, Schema, SqlType


@dataclass(frozen=True, slots=True)
class End:
    """`named` counts the key columns that the user named, or all of the key if none; `columns` is
    as `PlannedView` has it.
    """

    schema: Schema
    named: int
    unique: bool
    node: int
    columns: tuple[int, ...]


def plan_sink(planned: Planned, key: Sequence[str], context: Context) -> End:
    view = _columns_of(planned, key, context)
    return _plan_index(view, context) if view.is_index else _plan_records(view, context)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a view, and by their numbers what they are: `named` the key that the user
    chose, `identity` what makes a row unique, `partition` what the rows are partitioned by.

    The last two are None where that is not known, or not among the columns.
    """

    relation: Relation
    names: tuple[str, ...]
    values: tuple[Value, ...]
    types: tuple[SqlType, ...]
    named: tuple[int, ...]
    identity: tuple[int, ...] | None
    partition: tuple[int, ...] | None

    @property
    def record(self) -> tuple[int, ...]:
        """The key of a record: the columns that the user named, then what makes it unique; all
        columns of a bag.
        """
        needed = range(len(self.names)) if self.identity is None else self.identity
        return (*self.named, *(i for i in dict.fromkeys(needed) if i not in self.named))

    @property
    def schema(self) -> Schema:
        columns = tuple(Column(n, t) for n, t in zip(self.names, self.types, strict=True))
        return Schema(columns, tuple(self.names[i] for i in self.record))

    @property
    def is_id(self) -> bool:
        """Whether the key of a record is the row's `_id`, byte for byte."""
        identity = self.relation.identity
        return identity is not None and identity.exact and self.record == self.identity

    @property
    def is_index(self) -> bool:
        """Whether the user's key and the identity are apart, in a relation that an arrangement can
        hold.

        A record of an arrangement is the named columns and then the identity, which must be what
        `_id` says; 0.0 is -0.0 there. A column that stands twice is kept once.
        """
        relation = self.relation
        if not self.identity or not self.named or set(self.named) & set(self.identity):
            return False
        if relation.identity is None or not relation.identity.exact or len(relation.branches) > 1:
            return False
        once = len({v.place for v in self.values}) == len(self.values)
        doubles = any(self.types[i] == DOUBLE for i in self.record)
        return once and not doubles and self.record != self.partition


def _columns_of(planned: Planned, key: Sequence[str], context: Context) -> _Columns:
    relation = check_bounded(planned.relation)
    names = _distinct_names(planned)
    values = tuple(relation.known(f.text, context.label(f.text)) for f in planned.fields)
    identity, partition = relation.identity, relation.partition
    return _Columns(
        relation,
        tuple(names),
        values,
        tuple(value.type for value in values),
        tuple(_position(name, names) for name in key),
        _places(planned, identity.parts) if identity is not None else None,
        _places(planned, partition) if partition is not None else None,
    )


def _plan_records(view: _Columns, context: Context) -> End:
    """One record per key, or equal rows counted."""
    identity, record = view.relation.identity, view.record
    # An `_id` that fits was accepted as a key before; any other key may turn out too long.
    fits = identity is not None and identity.longest <= context.nodes.longest_key
    accepted = view.is_id and fits
    below = context.nodes.feed(view.relation, view.values, () if accepted else (record,))
    every = tuple(range(len(view.names)))
    sink: KeyedSink | BagSink = BagSink(WANTED, view.types, record)
    if view.identity is not None:
        rest = tuple(i for i in every if i not in record)
        sink = KeyedSink(WANTED, view.types, record, rest, view.is_id)
    node = context.nodes.add(sink, (below,), record == view.partition)
    named = len(view.named) or len(record)
    return End(view.schema, named, view.identity is not None, node, every)


def _plan_index(view: _Columns, context: Context) -> End:
    """Arranged as the side of a join would be, so that equal ones are one."""
    keys = [view.values[i] for i in dict.fromkeys(view.named)]
    known = {v.place for v in keys}
    rest = [v for v in view.values if v.place not in known]
    kept = [*keys, *sort_values(rest)]
    below = context.nodes.feed(view.relation, kept, [(*range(len(keys)), IDENTITY)])
    operator = Arrange(WANTED, tuple(v.type for v in kept), len(keys))
    node = context.nodes.add(operator, (below,), view.named == view.partition)
    places = [v.place for v in kept]
    columns = tuple(places.index(v.place) for v in view.values)
    return End(view.schema, len(view.named), True, node, columns)


def _places(planned: Planned, parts: Sequence[frozenset[str]]) -> tuple[int, ...] | None:
    """For each part the first output that is equal to it; None if one has no such output."""
    places = [
        next((i for i, f in enumerate(planned.fields) if f.text in part), None) for part in parts
    ]
    return tuple(p for p in places if p is not None) if None not in places else None


def _distinct_names(planned: Planned) -> list[str]:
    seen: set[str] = set()
    check_names("a column of the view", [f.name for f in planned.fields])
    for field in planned.fields:
        if field.name.lower() in seen:
            raise SqlError(
                f"two columns of the view are called {field.name}: name them apart with AS"
            )
        seen.add(field.name.lower())
    return [f.name for f in planned.fields]


def _position(name: str, names: Sequence[str]) -> int:
    for i, candidate in enumerate(names):
        if candidate.lower() == name.lower():
            return i
    raise SqlError(
        f"the key column {name} is not a column of the view: its columns are {', '.join(names)}"
    )
