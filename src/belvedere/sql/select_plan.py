"""A SELECT over one table, taken apart: what is grouped, which aggregates are called, what comes out.

This is the analysis of names and clauses; `planner` turns the result into operators. What is not maintained is refused
here, by the name of the construct and with the way around.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.sql.dialect import sql_of

_CLAUSES = {
    "joins": ("JOIN", ""),
    "laterals": ("LATERAL VIEW", ""),
    "pivots": ("PIVOT", ""),
    "windows": ("a WINDOW clause", ""),
    "qualify": ("QUALIFY", ""),
    "order": ("ORDER BY", "leave it out of the view and sort when you read it"),
    "sort": ("SORT BY", "leave it out of the view and sort when you read it"),
    "cluster": ("CLUSTER BY", "use WITH (key = '...') to choose the view's key"),
    "distribute": ("DISTRIBUTE BY", "use WITH (key = '...') to choose the view's key"),
    "limit": ("LIMIT", "leave it out of the view and limit when you read it"),
    "offset": ("OFFSET", "leave it out of the view and use it when you read it"),
    "sample": ("TABLESAMPLE", ""),
    "with_": ("WITH (a common table expression)", "write its query in place"),
    "with": ("WITH (a common table expression)", "write its query in place"),
    "connect": ("CONNECT BY", ""),
    "into": ("INTO", ""),
    "hint": ("a hint", "leave it out"),
}
_GROUPING = {"cube": "CUBE", "rollup": "ROLLUP", "grouping_sets": "GROUPING SETS", "totals": "WITH TOTALS"}


@dataclass(frozen=True, slots=True)
class Item:
    """One output column: its expression and its name."""

    node: exp.Expression
    name: str


@dataclass(frozen=True, slots=True)
class SelectPlan:
    relation: str  # the table's name
    alias: str
    where: exp.Expression | None
    groups: tuple[exp.Expression, ...]
    grouped: bool  # has GROUP BY, or aggregates without it
    having: exp.Expression | None
    items: tuple[Item, ...]
    distinct: bool


def analyse(query: exp.Expression, columns_of: dict[str, tuple[str, ...]]) -> SelectPlan:
    """Take a SELECT apart; `columns_of` gives the columns of the tables by lower-case name, to expand `*`."""
    if isinstance(query, exp.Subquery):
        return analyse(query.this, columns_of)
    if isinstance(query, exp.SetOperation):
        raise Unsupported(type(query).__name__.upper(), "create one view per side")
    if not isinstance(query, exp.Select):
        raise SqlError(f"a view is defined by a SELECT, not by {type(query).__name__.upper()}")
    relation, alias = _relation(query)
    _refuse_clauses(query)
    if relation.lower() not in columns_of:
        raise SqlError(f"there is no table {relation}: SHOW TABLES lists them")
    items = _items(query, alias, columns_of[relation.lower()])
    groups = _groups(query, items, columns_of[relation.lower()])
    having = query.args.get("having")
    where = query.args.get("where")
    aggregated = any(_aggregates(i.node) for i in items) or having is not None
    distinct = query.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise Unsupported("DISTINCT ON")
    if where is not None and _aggregates(where.this):
        raise SqlError("an aggregate function cannot stand in WHERE: use HAVING")
    return SelectPlan(
        relation,
        alias,
        where.this if where else None,
        groups,
        bool(groups) or aggregated or query.args.get("group") is not None,
        having.this if having else None,
        items,
        distinct is not None,
    )


def _refuse_clauses(query: exp.Select) -> None:
    for name, (construct, instead) in _CLAUSES.items():
        if query.args.get(name):
            raise Unsupported(construct, instead)
    for node in query.find_all(exp.Window, exp.Subquery, exp.Exists, exp.In):
        if isinstance(node, exp.Window):
            raise Unsupported(f"the window function {sql_of(node)}")
        if not isinstance(node, exp.In) or node.args.get("query"):
            raise Unsupported(f"the subquery in {sql_of(node)}")


def _relation(query: exp.Select) -> tuple[str, str]:
    source = query.args.get("from_") or query.args.get("from")
    if source is None:
        raise Unsupported("a SELECT without FROM", "a view needs a table whose changes it follows")
    table = source.this
    if isinstance(table, exp.Subquery):
        raise Unsupported("a subquery in FROM", "write its condition and columns in the view itself")
    if not isinstance(table, exp.Table) or isinstance(table.this, exp.Func):
        raise Unsupported(f"{sql_of(table)} in FROM")
    for name in ("joins", "laterals", "pivots", "sample", "version", "when"):
        if table.args.get(name):
            raise Unsupported("JOIN" if name == "joins" else f"{sql_of(table)} in FROM")
    return table.name, table.alias_or_name


def _items(query: exp.Select, alias: str, columns: tuple[str, ...]) -> tuple[Item, ...]:
    items: list[Item] = []
    for node in query.expressions:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            if node.args.get("except_") or node.args.get("except") or node.args.get("replace"):
                raise Unsupported("* EXCEPT", "name the columns")
            items += [Item(exp.column(name, table=alias), name) for name in columns]
        elif isinstance(node, exp.Alias):
            items.append(Item(node.this, node.alias))
        else:
            items.append(Item(node, default_name(node)))
    seen: set[str] = set()
    for item in items:
        if item.name.lower() in seen:
            raise SqlError(f"two columns of the view are called {item.name}: name them apart with AS")
        seen.add(item.name.lower())
    return tuple(items)


def default_name(node: exp.Expression) -> str:
    """Spark's name for a column without AS: count(1), sum(amount), (a + 1)."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count(1)"
    text = sql_of(node)
    return text.lower() if isinstance(node, exp.Func) else f"({text})" if isinstance(node, exp.Binary) else text


def _groups(query: exp.Select, items: tuple[Item, ...], columns: tuple[str, ...]) -> tuple[exp.Expression, ...]:
    group = query.args.get("group")
    if group is None:
        return ()
    for name, construct in _GROUPING.items():
        if group.args.get(name):
            raise Unsupported(construct, "create one view per grouping")
    if group.args.get("all"):
        return tuple(i.node for i in items if not _aggregates(i.node))
    aliases = {i.name.lower(): i.node for i in items if i.name.lower() not in {c.lower() for c in columns}}
    return tuple(_group(node, items, aliases) for node in group.expressions)


def _group(node: exp.Expression, items: tuple[Item, ...], aliases: dict[str, exp.Expression]) -> exp.Expression:
    """A grouping expression: itself, or the column that a number or an alias stands for (a table's column comes first)."""
    if isinstance(node, exp.Cube | exp.Rollup | exp.GroupingSets):
        construct = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else type(node).__name__.upper()
        raise Unsupported(construct, "create one view per grouping")
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.this)
        if not 1 <= number <= len(items):
            raise SqlError(f"GROUP BY {number}: the view has {len(items)} column(s)")
        node = items[number - 1].node
    elif isinstance(node, exp.Column) and not node.table:
        node = aliases.get(node.name.lower(), node)
    if _aggregates(node):
        raise SqlError(f"GROUP BY cannot contain the aggregate {sql_of(node)}")
    return node


def _aggregates(node: exp.Expression) -> bool:
    return node.find(exp.AggFunc) is not None
