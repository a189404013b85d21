"""Which keys a statement can be about: ranges of the keys of its relations, from WHERE and ON.

    WHERE id = 7 AND day >= date '2026-01-01'     one value of id, and days from there on

Only what lies in these ranges has to be read. The condition itself is still evaluated on it, so a
range may be too wide, but it must have every row for which the condition is true, and every row for
which it raises.

What is used are terms joined by AND that compare a key column with constants (see `bounds`), and in
WHERE over one relation whole conditions of such terms that are joined by OR. The terms before one
that may raise are used, those after it are not: a row that is not read was dropped by a term that
is tested earlier. If one may raise, a term that can be NULL for a row is not used either, because
after NULL the next term is tested. In a join nothing is used if any term may raise, and terms must
not be true for NULL, which outer joins fill in.

    terms of             relations that they bound
    WHERE, inner ON      all
    ON of LEFT JOIN      the right one
    ON of RIGHT JOIN     those on the left
    ON of FULL JOIN      none
    ON of SEMI, ANTI     the right one
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from belvedere.encoding.ranges import (
    EVERYTHING,
    MOST,
    KeyRange,
    Ranges,
    Spans,
    intersect,
    ranges_of,
    says_all,
    unite,
)
from belvedere.errors import SqlError
from belvedere.expressions import Typed, lower, with_room
from belvedere.sql.query.bounds import Bound, KeyColumn, bound_by
from belvedere.types import Column, Schema


@dataclass(frozen=True, slots=True)
class Keyed:
    """A table or view whose rows are stored by the key of its schema.

    `normalize` as in KeyCodec. `has_nulls`: columns of the key may be NULL.
    """

    schema: Schema
    normalize: bool
    has_nulls: bool


@with_room
def ranges_in(query: exp.Expr, relations: Mapping[str, Keyed]) -> dict[str, Ranges]:
    """For relations by their lower-case names what has to be read of them; all of those that are
    not mentioned.

    A relation that is named several times is read once, so it needs what each place needs.
    """
    hidden = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    visible = {name: keyed for name, keyed in relations.items() if name not in hidden}
    claims: dict[int, Ranges] = {}
    for select in query.find_all(exp.Select):
        claims |= _claims(select, visible)
    found: dict[str, Ranges] = {}
    for table in query.find_all(exp.Table):
        name = table.name.lower()
        found[name] = unite((*found.get(name, ()), *claims.get(id(table), EVERYTHING)))
    return {name: ranges for name, ranges in found.items() if ranges != EVERYTHING}


@with_room
def ranges_where(condition: exp.Expr | None, alias: str, keyed: Keyed) -> Ranges:
    """What an UPDATE or DELETE of one table has to read."""
    if condition is None:
        return EVERYTHING
    source = _Source(alias, keyed)
    _use_where(condition, [source])
    return source.ranges()


def exact_ranges(condition: exp.Expr, alias: str, keyed: Keyed) -> Ranges | None:
    """The keys of a relation for whose rows the condition is true, if it speaks of nothing but the
    key; None if to read them would not be enough.
    """
    source = _Source(alias, keyed)
    bounds = [_bound(term, [source]) for term in terms_of(condition)]
    if None in bounds:
        return _exact_either(condition.unnest(), alias, keyed)
    for bound in filter(None, bounds):
        source.narrow(_found(bound, [source])[1].name, bound.spans)
    return source.ranges() if source.says_all else None


def _exact_either(condition: exp.Expr, alias: str, keyed: Keyed) -> Ranges | None:
    """The same of conditions that are joined by OR."""
    if not isinstance(condition, exp.Or):
        return None
    found: list[KeyRange] = []
    for side in condition.flatten():
        ranges = exact_ranges(side, alias, keyed)
        if ranges is None or len(found) > MOST:
            return None
        found += ranges
    return unite(found)


@dataclass(slots=True)
class _Source:
    """A relation in FROM: what is known of its columns is collected in `spans`.

    If that is nothing, `either` has the ranges of conditions of which one must be true.
    `keyed` is None where it is not a table or view.
    """

    alias: str
    keyed: Keyed | None
    spans: dict[str, Spans] = field(default_factory=dict)
    either: Ranges = EVERYTHING

    def column(self, name: str) -> Column | None:
        columns = self.keyed.schema.columns if self.keyed else ()
        return next((c for c in columns if c.name.lower() == name.lower()), None)

    def narrow(self, name: str, spans: Spans) -> None:
        self.spans[name] = intersect(self.spans[name], spans) if name in self.spans else spans

    def ranges(self) -> Ranges:
        return ranges_of(self._columns) if self.spans else self.either

    @property
    def says_all(self) -> bool:
        """Whether the ranges have no key beside those that the conditions leave."""
        return says_all(self._columns)

    @property
    def _columns(self) -> list[Spans | None]:
        key = self.keyed.schema.key if self.keyed else ()
        return [self.spans.get(name) for name in key]


def _claims(select: exp.Select, relations: Mapping[str, Keyed]) -> dict[int, Ranges]:
    """What has to be read of the tables in FROM, by the identity of their nodes in the tree."""
    start, joins = select.args.get("from_"), select.args.get("joins") or []
    nodes = [start.this, *(join.this for join in joins)] if start is not None else []
    if any(isinstance(node, exp.Table) and node.args.get("joins") for node in nodes):
        return {}
    sources = [_source(node, relations) for node in nodes]
    if any(_join_may_raise(join, sources) for join in joins):
        return {}
    where = select.args.get("where")
    if where is not None and not _use_where(where.this, sources):
        return {}
    for number, join in enumerate(joins, 1):
        _use_on(join, number, sources)
    return {id(node): source.ranges() for node, source in zip(nodes, sources, strict=True)}


def _source(node: exp.Expr, relations: Mapping[str, Keyed]) -> _Source:
    alias = node.args.get("alias")
    renamed = alias is not None and bool(alias.args.get("columns"))
    if not isinstance(node, exp.Table) or renamed:
        return _Source(node.alias_or_name, None)
    return _Source(node.alias_or_name, relations.get(node.name.lower()))


def _resolve(column: exp.Column, sources: Sequence[_Source]) -> tuple[_Source, Column] | None:
    """The relation and the column that a name means, where that is certain."""
    relation = column.table.lower()
    among = [s for s in sources if not relation or s.alias.lower() == relation]
    if column.args.get("db") or any(source.keyed is None for source in among):
        return None
    found = [(s, c) for s in among if (c := s.column(column.name)) is not None]
    return found[0] if len(found) == 1 else None


def _bound(term: exp.Expr, sources: Sequence[_Source]) -> Bound | None:
    def key_column(column: exp.Column) -> KeyColumn | None:
        found = _resolve(column, sources)
        if found is None or found[0].keyed is None:
            return None
        keyed = found[0].keyed
        is_key = found[1].name in keyed.schema.key
        return KeyColumn(found[1], keyed.normalize) if is_key else None

    return bound_by(term, key_column)


def _may_raise(term: exp.Expr, sources: Sequence[_Source]) -> bool:
    """Whether the evaluation of a term may fail for some row, as far as it is known."""

    def typed(column: exp.Column) -> Typed:
        found = _resolve(column, sources)
        if found is None:
            raise SqlError(f"{column.name} is not certain")
        return Typed("x", found[1].type)

    try:
        return lower(term, typed).raises
    except SqlError:  # subqueries and columns of other queries: whatever they are, they may
        return True


def terms_of(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Conditions that are joined by AND, in the order in which they are tested."""
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        yield from terms_of(inner.this)
        yield from terms_of(inner.expression)
    else:
        yield inner


def _use_where(condition: exp.Expr, sources: Sequence[_Source]) -> bool:
    """Narrow the sources by WHERE; False if nothing is to be narrowed, by nothing at all."""
    bounds, raises = _bounds_of(condition, sources)
    joined = len(sources) > 1
    if len(sources) == 1 and not bounds and not raises:
        _use_either(condition.unnest(), sources[0])
    if raises and joined:
        return False
    for bound in bounds:
        source, column = _found(bound, sources)
        is_certain = bound.decides and not (bound.rejects_null and _has_nulls(source))
        if (bound.rejects_null or not joined) and (is_certain or not raises):
            source.narrow(column.name, bound.spans)
    return True


def _bounds_of(condition: exp.Expr, sources: Sequence[_Source]) -> tuple[list[Bound], bool]:
    """What the terms before the first one that may raise say, and whether there is one."""
    bounds: list[Bound] = []
    for term in terms_of(condition):
        bound = _bound(term, sources)
        if bound is not None:
            bounds.append(bound)
        elif _may_raise(term, sources):
            return bounds, True
    return bounds, False


def _use_either(condition: exp.Expr, source: _Source) -> None:
    """Narrow a source by conditions joined by OR, none of which may raise."""
    if not isinstance(condition, exp.Or):
        return
    found: list[KeyRange] = []
    for side in condition.flatten():
        inner = _Source(source.alias, source.keyed)
        _use_where(side, [inner])
        found += inner.ranges()
        if inner.ranges() == EVERYTHING or len(found) > MOST:
            return
    source.either = unite(found)


def _found(bound: Bound, sources: Sequence[_Source]) -> tuple[_Source, Column]:
    found = _resolve(bound.column, sources)
    assert found is not None  # else it would not be a bound
    return found


def _has_nulls(source: _Source) -> bool:
    return source.keyed is None or source.keyed.has_nulls


def _use_on(join: exp.Join, number: int, sources: Sequence[_Source]) -> None:
    """Narrow the sources that the condition of the join with source `number` bounds."""
    on = join.args.get("on")
    if on is None:
        return
    bounded = _bounded_by(join, number, sources)
    for term in terms_of(on):
        bound = _bound(term, sources[: number + 1])
        if bound is None or not bound.rejects_null:
            continue
        source, column = _found(bound, sources[: number + 1])
        if any(source is each for each in bounded):
            source.narrow(column.name, bound.spans)


def _bounded_by(join: exp.Join, number: int, sources: Sequence[_Source]) -> Sequence[_Source]:
    if join.side == "FULL":
        return ()
    if join.side == "LEFT" or join.kind in ("SEMI", "ANTI"):
        return sources[number : number + 1]
    return sources[:number] if join.side == "RIGHT" else sources[: number + 1]


def _join_may_raise(join: exp.Join, sources: Sequence[_Source]) -> bool:
    on, using = join.args.get("on"), join.args.get("using") or []
    if join.method == "NATURAL":
        return True
    if any(not _have_one_type(column.name, sources) for column in using):
        return True
    terms: Iterable[exp.Expr] = terms_of(on) if on is not None else ()
    return any(_bound(term, sources) is None and _may_raise(term, sources) for term in terms)


def _have_one_type(name: str, sources: Sequence[_Source]) -> bool:
    """Whether no cast is needed to compare the columns of this name."""
    if any(source.keyed is None for source in sources):
        return False
    return len({c.type for s in sources if (c := s.column(name)) is not None}) == 1
