"""Queries whose answer is what is read: plain columns of one relation, by conditions on its key.

    SELECT * FROM t WHERE id = 7
    SELECT name, id AS number FROM t WHERE id IN (1, 2) LIMIT 5
    SELECT day FROM t WHERE id = ? AND day >= date '2026-01-01'

There is nothing to evaluate, so DuckDB is not asked. Anything else is None here, also what is
wrong: who translates it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from belvedere.encoding.ranges import Ranges
from belvedere.errors import SqlError
from belvedere.expressions import with_room
from belvedere.sql.parameters import Place, place_of
from belvedere.sql.query.keyed import Keyed, exact_ranges, terms_of
from belvedere.sql.query.refusal import QUERY
from belvedere.sql.understood import check
from belvedere.types import Column, Schema

_CLAUSES = {"expressions", "from_", "where", "limit"}
_PARTS = {"this", "alias"}
_LARGEST = 1 << 31  # of the numbers behind LIMIT


@dataclass(frozen=True, slots=True)
class Direct:
    """`columns` of the rows of a relation whose keys are in `ranges`, under the names of `schema`;
    all, or the first `count`.
    """

    relation: str
    keyed: Keyed
    ranges: Ranges
    columns: tuple[str, ...]
    schema: Schema
    count: int | None

    @property
    def key(self) -> tuple[bytes, ...] | None:
        """The encodings of the columns of the only key, if there is only one."""
        is_one = len(self.ranges) == 1 and self.ranges[0].is_key(len(self.keyed.schema.key))
        return self.ranges[0].bound if is_one and self.count != 0 else None


@with_room
def direct(query: exp.Expr, relations: Mapping[str, Keyed]) -> Direct | None:
    """What is to be read, by lower-case names of relations, if that is the answer."""
    table = _only_table(query)
    where = query.args.get("where")
    keyed = relations.get(table.name.lower()) if table is not None else None
    if table is None or where is None or keyed is None or not _is_understood(query):
        return None
    alias, limit = table.alias_or_name, query.args.get("limit")
    outputs = list(_outputs(query, alias, keyed.schema))
    ranges = exact_ranges(where.this, alias, keyed) if None not in outputs else None
    if ranges is None or (limit is not None and _count(limit) is None):
        return None
    return Direct(
        relation=table.name.lower(),
        keyed=keyed,
        ranges=ranges,
        columns=tuple(column.name for _, column in filter(None, outputs)),
        schema=Schema(tuple(Column(name, c.type) for name, c in filter(None, outputs))),
        count=_count(limit) if limit is not None else None,
    )


def parameters_of_key(query: exp.Expr, found: Direct) -> list[Place | None] | None:
    """The parameters that the columns of the key are equal to, None for a constant; None if the
    condition is anything but one equality for each column.
    """
    places: dict[str, Place | None] = {}
    terms = list(terms_of(query.args["where"].this))
    for term in terms:
        if not isinstance(term, exp.EQ):
            return None
        sides = [term.this.unnest(), term.expression.unnest()]
        if not isinstance(sides[0], exp.Column):
            sides.reverse()
        places[sides[0].name.lower()] = place_of(sides[1])
    key = [name.lower() for name in found.keyed.schema.key]
    return [places[name] for name in key] if len(terms) == len(key) == len(places) else None


def _only_table(query: exp.Expr) -> exp.Table | None:
    """The relation of a query that has nothing else in FROM, and no clause but those known here."""
    start = query.args.get("from_")
    if not isinstance(query, exp.Select) or start is None or not _has_only(query, _CLAUSES):
        return None
    table = start.this
    if not isinstance(table, exp.Table) or not _has_only(table, _PARTS):
        return None
    alias = table.args.get("alias")
    return table if alias is None or not alias.args.get("columns") else None


def _has_only(node: exp.Expr, arguments: set[str]) -> bool:
    return all(name in arguments for name, value in node.args.items() if value)


def _is_understood(query: exp.Expr) -> bool:
    try:
        check(query, QUERY)
    except SqlError:
        return False
    return True


def _outputs(query: exp.Expr, alias: str, schema: Schema) -> Iterator[tuple[str, Column] | None]:
    """Names and columns that come out; None for what is not plainly a column."""
    columns = {column.name.lower(): column for column in schema.columns}
    for node in query.expressions:
        if _is_star(node, alias):
            yield from ((column.name, column) for column in schema.columns)
            continue
        inner = node.this if isinstance(node, exp.Alias) else node
        is_own = isinstance(inner, exp.Column) and inner.table.lower() in ("", alias.lower())
        column = columns.get(inner.name.lower()) if is_own else None
        yield (node.alias_or_name, column) if column is not None else None


def _is_star(node: exp.Expr, alias: str) -> bool:
    """Whether it is `*` or `t.*`, without anything behind it."""
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(node, exp.Column) and node.table.lower() != alias.lower():
        return False
    return isinstance(star, exp.Star) and not any(star.args.values())


def _count(limit: exp.Expr) -> int | None:
    """A plain number behind LIMIT."""
    number = limit.expression
    if not isinstance(number, exp.Literal) or number.is_string or not str(number.this).isdigit():
        return None
    return int(number.this) if int(number.this) < _LARGEST else None
