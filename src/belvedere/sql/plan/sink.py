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

from belvedere.encoding import MAX_KEY
from belvedere.errors import SqlError
from belvedere.operators.arrange import Arrange
from belvedere.operators.select import IDENTITY
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.sql.names import check_names
from belvedere.sql.plan.context import Context, Planned
from belvedere.sql.plan.joining import check_bounded
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.relation import Relation, Value
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


def ended(found: Planned, key: Sequence[str], context: Context) -> End:
    relation = check_bounded(found.relation)
    names = _distinct_names(found)
    values = [relation.known(f.text, context.label(f.text)) for f in found.fields]
    types = tuple(v.type for v in values)
    named = [_position(name, names) for name in key]
    identity = _places(found, relation.identity.parts) if relation.identity else None
    needed = list(range(len(names))) if identity is None else list(dict.fromkeys(identity))
    record = tuple(named + [i for i in needed if i not in named])
    by_id = bool(relation.identity and relation.identity.exact) and record == identity
    local = relation.partition is not None and record == _places(found, relation.partition)
    accepted = by_id and relation.identity is not None and relation.identity.longest <= MAX_KEY
    schema = Schema(
        tuple(Column(n, t) for n, t in zip(names, types, strict=True)),
        tuple(names[i] for i in record),
    )
    distinct = len({v.place for v in values}) == len(values)
    if identity and not local and distinct and _is_index(relation, named, identity, types):
        stays = relation.partition is not None and tuple(named) == _places(
            found, relation.partition
        )
        node, columns = _index(relation, values, named, stays, context)
        return End(schema, len(named), True, node, columns)
    below = context.nodes.feed(relation, values, () if accepted else (record,))
    sink: KeyedSink | BagSink = BagSink(WANTED, types, record)
    if identity is not None:
        sink = KeyedSink(
            WANTED, types, record, tuple(i for i in range(len(names)) if i not in record), by_id
        )
    node = context.nodes.add(sink, (below,), local)
    return End(
        schema, len(named) or len(record), identity is not None, node, tuple(range(len(names)))
    )


def _is_index(
    relation: Relation, named: Sequence[int], identity: Sequence[int], types: Sequence[SqlType]
) -> bool:
    """A record of an arrangement is the named columns and then the identity, which must be what
    `_id` says; 0.0 is -0.0 there.
    """
    exact = relation.identity is not None and relation.identity.exact
    apart = bool(named) and not set(named) & set(identity) and len(relation.branches) == 1
    return exact and apart and not any(types[i] == DOUBLE for i in (*named, *identity))


def _index(
    relation: Relation, values: Sequence[Value], named: Sequence[int], stays: bool, context: Context
) -> tuple[int, tuple[int, ...]]:
    """Arranged as the side of a join would be, so that equal ones are one; and where the view's
    columns stand in it.
    """
    keys = [values[i] for i in dict.fromkeys(named)]
    known = {v.place for v in keys}
    rest = sorted(
        {v.place: v for v in values if v.place not in known}.values(), key=lambda v: v.place
    )
    kept = [*keys, *rest]
    below = context.nodes.feed(relation, kept, [(*range(len(keys)), IDENTITY)])
    node = context.nodes.add(
        Arrange(WANTED, tuple(v.type for v in kept), len(keys)), (below,), stays
    )
    places = [v.place for v in kept]
    return node, tuple(places.index(v.place) for v in values)


def _places(found: Planned, parts: Sequence[frozenset[str]]) -> tuple[int, ...] | None:
    """For each part the first output that is equal to it; None if one has no such output."""
    places = [
        next((i for i, f in enumerate(found.fields) if f.text in part), None) for part in parts
    ]
    return tuple(p for p in places if p is not None) if None not in places else None


def _distinct_names(found: Planned) -> list[str]:
    seen: set[str] = set()
    check_names("a column of the view", [f.name for f in found.fields])
    for field in found.fields:
        if field.name.lower() in seen:
            raise SqlError(
                f"two columns of the view are called {field.name}: name them apart with AS"
            )
        seen.add(field.name.lower())
    return [f.name for f in found.fields]


def _position(name: str, names: Sequence[str]) -> int:
    for i, candidate in enumerate(names):
        if candidate.lower() == name.lower():
            return i
    raise SqlError(
        f"the key column {name} is not a column of the view: its columns are {', '.join(names)}"
    )
