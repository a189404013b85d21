"""A SELECT in two: the joins that the warehouse keeps, and what is computed over their rows.

    SELECT upper(c.name) AS name, o.amount            core   o, c joined by o.customer = c.id, with
    FROM shop.orders o                                       o.id, o.amount, c.id, c.name (the keys
    JOIN crm.customers c ON o.customer = c.id                are added if the SELECT lacks them)
    WHERE o.amount > 100                              upper  SELECT upper(..) AS name, .. FROM core
                                                             WHERE .. > 100

The core is a select-project-join view, as the Strobe family wants it. The upper SELECT is an
ordinary view over the core's rows, so any expression may stand in it. What needs more than one of
these rows (groups, DISTINCT, first rows) is a view on this view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sources.base import Relation
from belvedere.types import BIGINT, DOUBLE, INT
from belvedere.warehouse.rows import Equality, Member, Shape

Find = Callable[[exp.Table], tuple[str, Relation]]  # the source of a relation, and what it is
Place = tuple[int, int]  # a member, and a column of its relation

_KEPT = {"kind", "expressions", "from_", "joins", "where"}
_WORDS = {
    "with_": "WITH",
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "laterals": "LATERAL VIEW",
}
_WHOLE = {INT, BIGINT}  # one number is the same in both


@dataclass(frozen=True, slots=True)
class Core:
    """`names` are those of the shape's shown columns, `added` the keys that the SELECT lacks."""

    shape: Shape
    names: tuple[str, ...]
    added: tuple[str, ...]
    upper: exp.Select


@dataclass(frozen=True, slots=True)
class _Table:
    alias: str
    source: str
    relation: Relation

    def column(self, name: str) -> int | None:
        names = [n.lower() for n in self.relation.schema.names]
        return names.index(name.lower()) if name.lower() in names else None


def core_of(query: exp.Expr, find: Find, name: str) -> Core:
    """The core of a SELECT, and the SELECT over it as a table of this name. Raises SqlError if
    there is none.
    """
    return _Split(_checked(query).copy(), find, name).run()


class _Split:
    def __init__(self, select: exp.Select, find: Find, name: str) -> None:
        self.select, self.name = select, name
        self.tables = list(_tables(select, find))
        _check_aliases(self.tables)

    def run(self) -> Core:
        self._expand_stars()
        self._name_outputs()
        ties, rest = self._conditions()
        _check_connected(self.tables, ties)
        wanted = dict.fromkeys(self._places([*self.select.expressions, *rest]))
        keys = [(n, c) for n, t in enumerate(self.tables) for c in _key(t)]
        added = [place for place in keys if place not in wanted]
        shown = sorted({*wanted, *keys})
        shape = _shape(self.tables, ties, shown)
        upper = self._upper(rest)
        names = tuple(self._name(place) for place in shown)
        return Core(shape, names, tuple(self._name(place) for place in added), upper)

    def _expand_stars(self) -> None:
        expressions: list[exp.Expr] = []
        for expression in self.select.expressions:
            if not expression.is_star:
                expressions.append(expression)
                continue
            star = expression.find(exp.Star)
            if (
                not isinstance(expression, exp.Star | exp.Column)
                or star is None
                or any(star.args.values())
            ):
                raise SqlError(f"{expression.sql()} is not understood here: name the columns")
            of = expression.table if isinstance(expression, exp.Column) else ""
            expressions += self._all_columns(of)
        self.select.set("expressions", expressions)

    def _all_columns(self, alias: str) -> list[exp.Expr]:
        chosen = [t for t in self.tables if not alias or t.alias.lower() == alias.lower()]
        if not chosen:
            raise SqlError(f"there is no relation {alias} in FROM")
        return [
            exp.column(
                exp.to_identifier(name, quoted=True), exp.to_identifier(t.alias, quoted=True)
            )
            for t in chosen
            for name in t.relation.schema.names
        ]

    def _name_outputs(self) -> None:
        named: list[exp.Expr] = []
        for expression in self.select.expressions:
            if not expression.alias_or_name:
                raise SqlError(f"{expression.sql()} has no name: write AS and a name behind it")
            if isinstance(expression, exp.Alias):
                named.append(expression)
            else:
                named.append(exp.alias_(expression, expression.alias_or_name, quoted=True))
        self.select.set("expressions", named)

    def _conditions(self) -> tuple[list[tuple[Place, Place]], list[exp.Expr]]:
        """Equalities of columns of two members, and all other conjuncts."""
        where = self.select.args.get("where")
        nodes = [
            join.args["on"] for join in self.select.args.get("joins") or () if join.args.get("on")
        ]
        nodes += [where.this] if where is not None else []
        conjuncts = [part for n in nodes for part in _conjuncts(n)]
        found = [(self._tie(node), node) for node in conjuncts]
        ties = [tie for tie, _ in found if tie is not None]
        return ties, [node for tie, node in found if tie is None]

    def _tie(self, node: exp.Expr) -> tuple[Place, Place] | None:
        """Columns of one type that has one equality: of floating numbers, NaN has two."""
        node = node.unnest()
        if not isinstance(node, exp.EQ):
            return None
        sides = [side.unnest() for side in (node.this, node.expression)]
        if not all(isinstance(side, exp.Column) for side in sides):
            return None
        one, other = (self._place(side) for side in sides)
        if one is None or other is None or one[0] == other[0]:
            return None
        types = {self.tables[m].relation.schema.columns[c].type for m, c in (one, other)}
        is_one = len(types) == 1 or types <= _WHOLE
        return (one, other) if is_one and DOUBLE not in types else None

    def _place(self, column: exp.Column) -> Place | None:
        found = [
            (n, place)
            for n, table in enumerate(self.tables)
            if not column.table or column.table.lower() == table.alias.lower()
            if (place := table.column(column.name)) is not None
        ]
        if len(found) > 1:
            owners = ", ".join(self.tables[n].alias for n, _ in found)
            raise SqlError(f"{column.name} is a column of {owners}: write which one is meant")
        return found[0] if found else None

    def _places(self, nodes: Iterable[exp.Expr]) -> Iterator[Place]:
        for node in nodes:
            for column in node.find_all(exp.Column):
                place = self._place(column)
                if place is None:
                    raise SqlError(f"there is no column {column.sql()} in the relations of FROM")
                yield place

    def _name(self, place: Place) -> str:
        table = self.tables[place[0]]
        return f"{table.alias}.{table.relation.schema.names[place[1]]}"

    def _upper(self, rest: Sequence[exp.Expr]) -> exp.Select:
        upper = exp.select(*self.select.expressions).from_(
            exp.to_identifier(self.name, quoted=True)
        )
        if rest:
            upper = upper.where(*rest)
        for column in list(upper.find_all(exp.Column)):
            place = self._place(column)
            assert place is not None, "looked up before"
            column.replace(exp.column(_quoted(self._name(place))))
        return upper


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    return [node]


def _checked(query: exp.Expr) -> exp.Select:
    if not isinstance(query, exp.Select):
        raise _not_kept("set operation")
    for argument, value in query.args.items():
        if argument not in _KEPT and value not in (None, [], False):
            raise _not_kept(_WORDS.get(argument, argument.upper()))
    for kind, word in (
        (exp.Subquery, "subquery"),
        (exp.Query, "subquery"),
        (exp.AggFunc, "aggregate"),
        (exp.Window, "window"),
        (exp.UDTF, "table function"),
    ):
        if any(node is not query for node in query.find_all(kind)):
            raise _not_kept(word)
    return query


def _not_kept(what: str) -> SqlError:
    return SqlError(
        f"a view WITH (algorithm = ...) joins relations and has no {what}: create it without, and"
        " another view on it; or leave `algorithm` out"
    )


def _tables(select: exp.Select, find: Find) -> Iterator[_Table]:
    start = select.args.get("from_")
    joins = select.args.get("joins") or []
    for join in joins:
        words = [str(join.args.get(word) or "") for word in ("method", "side", "kind")]
        if words not in (["", "", ""], ["", "", "INNER"], ["", "", "CROSS"]):
            raise _not_kept(" ".join([*filter(None, words), "JOIN"]))
        if join.args.get("using"):
            raise _not_kept("USING, but ON with the columns of both sides")
    for table in [start.this if start is not None else None, *(join.this for join in joins)]:
        if not isinstance(table, exp.Table) or table.args.get("joins"):
            raise _not_kept("anything in FROM but relations")
        source, relation = find(table)
        yield _Table(table.alias_or_name, source, relation)


def _check_aliases(tables: Sequence[_Table]) -> None:
    names = [t.alias.lower() for t in tables]
    if twice := [n for i, n in enumerate(names) if n in names[:i]]:
        raise SqlError(f"FROM has two relations called {twice[0]}: give them names with AS")


def _check_connected(tables: Sequence[_Table], ties: Sequence[tuple[Place, Place]]) -> None:
    reached, grown = {0}, True
    while grown:
        near = {m for tie in ties for m, _ in tie if {n for n, _ in tie} & reached}
        grown = not near <= reached
        reached |= near
    if apart := [t.alias for n, t in enumerate(tables) if n not in reached]:
        raise SqlError(
            "no equality of two columns (of one type, where INT and BIGINT are one, and not a"
            f" floating one) joins {apart[0]} with {tables[0].alias}: for each change all its rows"
            " would be fetched. Join it by a column, or leave `algorithm` out"
        )


def _key(table: _Table) -> list[int]:
    return [table.relation.schema.names.index(name) for name in table.relation.schema.key]


def _shape(
    tables: Sequence[_Table], ties: Sequence[tuple[Place, Place]], shown: Sequence[Place]
) -> Shape:
    """Columns of members are those that travel: shown ones, and those that joins look at."""
    needed = sorted({*shown, *(place for tie in ties for place in tie)})
    travels = [[c for n, c in needed if n == number] for number in range(len(tables))]

    def at(place: Place) -> Place:
        return place[0], travels[place[0]].index(place[1])

    members = tuple(
        Member(
            t.relation.name,
            t.source,
            tuple(t.relation.schema.names[c] for c in travels[n]),
            tuple(travels[n].index(c) for c in _key(t)),
        )
        for n, t in enumerate(tables)
    )
    equalities = tuple(Equality(*at(one), *at(other)) for one, other in ties)
    return Shape(members, equalities, tuple(at(place) for place in shown))
