"""One SELECT: its clauses bound to columns, then turned into stages in the order in which SQL
evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sql.binding import (
    Find,
    all_named,
    bind,
    calls_in,
    default_name,
    grouped_by,
    parts_of,
    text_of,
)
from belvedere.sql.query.aggregation import aggregated, normalised
from belvedere.sql.query.computed import as_value, check_memberships, with_subqueries, with_windows
from belvedere.sql.query.context import Context
from belvedere.sql.query.ordering import has_all, limits, ordinal, sort_keys
from belvedere.sql.query.refusal import NotAnswered, not_understood
from belvedere.sql.query.sources import source
from belvedere.sql.query.stage import Output, Relation, Stage, column_of

_GROUPING = {"cube": "CUBE", "rollup": "ROLLUP", "grouping_sets": "GROUPING SETS"}


@dataclass(frozen=True, slots=True)
class _Item:
    name: str
    node: exp.Expr  # bound


@dataclass(frozen=True, slots=True)
class _Clauses:
    """The clauses of a SELECT with their columns bound."""

    items: tuple[_Item, ...]
    where: exp.Expr | None
    groups: tuple[exp.Expr, ...] | None  # None: neither GROUP BY nor aggregates
    having: exp.Expr | None
    sorts: tuple[tuple[exp.Expr, str], ...]
    calls: tuple[exp.Expr, ...]

    @property
    def results(self) -> list[exp.Expr]:
        """What is evaluated after grouping."""
        return [
            *(item.node for item in self.items),
            *(node for node, _ in self.sorts),
            *([self.having] if self.having else []),
        ]


def selected(query: exp.Select, context: Context) -> Relation:
    stage = source(query, context)
    clauses = _clauses(query, stage)
    before = [clauses.where] if clauses.where else []
    before += clauses.results if clauses.groups is None else [*clauses.groups, *clauses.calls]
    stage = with_subqueries(stage, before, context).filtered(clauses.where, "WHERE")
    if clauses.groups is not None:
        stage = aggregated(stage, clauses.groups, clauses.calls, context)
        stage = with_subqueries(
            stage, [node for node in clauses.results if not _is_value(stage, node)], context
        )
        stage = stage.filtered(clauses.having, "HAVING")
    stage = with_windows(stage, clauses.results, context)
    return _projected(query, stage, clauses, context)


def _is_value(stage: Stage, node: exp.Expr) -> bool:
    return stage.value(text_of(node)) is not None


def _clauses(query: exp.Select, stage: Stage) -> _Clauses:
    items = _items(query, stage)
    nodes = [item.node for item in items]
    having, where = query.args.get("having"), query.args.get("where")
    groups = _groups(query, items, stage)
    by_output = _alias_first(items, stage)
    kept = (
        bind(having.this, _group_first(groups or (), stage, by_output), stage.find)
        if having
        else None
    )
    sorts = tuple(
        sort_keys(
            query, nodes, lambda node: bind(node, by_output, stage.find), _has_all(items, stage)
        )
    )
    condition = bind(where.this, stage.find) if where else None
    if condition is not None and parts_of([condition], exp.AggFunc, exp.Window):
        raise SqlError(
            "an aggregate or window function cannot stand in WHERE: use HAVING, or a query around"
            " this one"
        )
    calls = calls_in([*nodes, *(node for node, _ in sorts), *([kept] if kept else [])])
    for node in [*nodes, *(groups or ()), *(node for node, _ in sorts)]:
        check_memberships(node, tested=False)
    for test in filter(None, [condition, kept]):
        check_memberships(test, tested=True)
    grouped = groups is not None or bool(calls) or having is not None
    return _Clauses(
        tuple(items), condition, (groups or ()) if grouped else None, kept, sorts, tuple(calls)
    )


def _items(query: exp.Select, stage: Stage) -> list[_Item]:
    """The outputs; a name that no relation has may be the alias of an output before it."""
    items: list[_Item] = []
    aliases: dict[str, exp.Expr] = {}
    for node in query.expressions:
        if isinstance(node, exp.Star) or (
            isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
        ):
            items += _star(node, stage)
        elif isinstance(node, exp.Alias):
            items.append(_Item(node.alias, as_value(bind(node.this, _input_first(stage, aliases)))))
            aliases[node.alias.lower()] = items[-1].node
        elif isinstance(node, exp.Aliases):
            raise NotAnswered(text_of(node))
        else:
            items.append(
                _Item(default_name(node), as_value(bind(node, _input_first(stage, aliases))))
            )
    return items


def _star(node: exp.Expr, stage: Stage) -> list[_Item]:
    star = node.this if isinstance(node, exp.Column) else node
    relation = node.table.lower() if isinstance(node, exp.Column) else ""
    fields = [
        f for f in stage.fields if (f.relation.lower() == relation if relation else f.visible)
    ]
    if not fields or node.args.get("db"):
        raise SqlError(
            f"{text_of(node)}: there is no such relation in FROM"
            if relation
            else "* needs a FROM clause"
        )
    left_out = {column.name.lower() for column in star.args.get("except_") or []}
    unknown = left_out - {f.name.lower() for f in fields}
    if unknown:
        raise SqlError(f"* EXCEPT: there is no column {', '.join(sorted(unknown))}")
    return [_Item(f.name, f.bound) for f in fields if f.name.lower() not in left_out]


def _input_first(stage: Stage, aliases: Mapping[str, exp.Expr]) -> Find:
    def find(column: exp.Column) -> exp.Expr:
        alias = None if column.table else aliases.get(column.name.lower())
        found = stage.found(column)
        return found if found is not None else alias if alias is not None else stage.find(column)

    return find


def _alias_first(items: Sequence[_Item], stage: Stage) -> Find:
    """In ORDER BY a name is an output, if there is one."""

    def find(column: exp.Column) -> exp.Expr:
        named = (
            []
            if column.table
            else [item.node for item in items if item.name.lower() == column.name.lower()]
        )
        if len({text_of(node) for node in named}) > 1:
            raise SqlError(f"column {column.name} is ambiguous: two outputs have that name")
        return named[0] if named else stage.find(column)

    return find


def _group_first(groups: Sequence[exp.Expr], stage: Stage, otherwise: Find) -> Find:
    """In HAVING a name is a column of GROUP BY first, and then as in ORDER BY."""
    texts = {text_of(group) for group in groups}

    def find(column: exp.Column) -> exp.Expr:
        fields = [
            f for f in stage.fields if f.name.lower() == column.name.lower() and f.text in texts
        ]
        return stage.find(column) if fields else otherwise(column)

    return find


def _groups(query: exp.Select, items: Sequence[_Item], stage: Stage) -> tuple[exp.Expr, ...] | None:
    group = query.args.get("group")
    if group is None:
        return None
    for name, construct in _GROUPING.items():
        if group.args.get(name):
            raise NotAnswered(construct)
    if all_named(grouped_by(group)) is not None and not _has_all(items, stage):
        return _distinct([item.node for item in items if not calls_in([item.node])])
    aliases = {item.name.lower(): item.node for item in reversed(items)}
    groups = []
    for node in grouped_by(group):
        if isinstance(node, exp.Cube | exp.Rollup | exp.GroupingSets):
            raise NotAnswered(type(node).__name__.upper())
        bound = ordinal(node, [item.node for item in items], "GROUP BY") or as_value(
            bind(node, _input_first(stage, aliases))
        )
        if parts_of([bound], exp.AggFunc, exp.Window):
            raise SqlError(
                f"GROUP BY cannot contain an aggregate or window function: {text_of(node)}"
            )
        groups.append(bound)
    return _distinct(groups)


def _has_all(items: Sequence[_Item], stage: Stage) -> bool:
    """Whether ALL is the name of a column or an output."""
    return has_all(stage.fields) or any(item.name.upper() == "ALL" for item in items)


def _distinct(nodes: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
    return tuple({text_of(node): node for node in nodes}.values())


def _projected(query: exp.Select, stage: Stage, clauses: _Clauses, context: Context) -> Relation:
    """The outputs, and beside them what only ORDER BY needs."""
    distinct = query.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise not_understood(
            "DISTINCT ON",
            "number the rows of each group with row_number() in a subquery, and keep those with 1",
        )
    values = [stage.lower(item.node) for item in clauses.items]
    outputs = tuple(
        Output(item.name, value.type, f"c{i}")
        for i, (item, value) in enumerate(zip(clauses.items, values, strict=True))
    )
    columns = [f"{normalised(v) if distinct else v.sql} AS c{i}" for i, v in enumerate(values)]
    plain = f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(columns)} FROM {stage.sql}"
    if not clauses.sorts:
        return Relation(plain + limits(query), outputs)
    alias = context.fresh("r")
    texts = {
        text_of(item.node): column_of(f"{alias}.c{i}", v.type)
        for i, (item, v) in enumerate(zip(clauses.items, values, strict=True))
    }
    if distinct:
        above = replace(
            stage, values=texts, missing="must be an output, because of SELECT DISTINCT"
        )
        keys = [f"{above.lower(node).sql} {words}" for node, words in clauses.sorts]
    else:
        keys = []
        hidden: list[str] = []
        for node, words in clauses.sorts:
            known = texts.get(text_of(node))
            if known is None:
                hidden.append(f"{stage.lower(node).sql} AS o{len(hidden)}")
            keys.append(f"{known.sql if known else f'{alias}.o{len(hidden) - 1}'} {words}")
        plain = f"SELECT {', '.join([*columns, *hidden])} FROM {stage.sql}"
    names = ", ".join(f"{alias}.{o.column}" for o in outputs)
    return Relation(
        f"SELECT {names} FROM ({plain}) AS {alias} ORDER BY {', '.join(keys)}{limits(query)}",
        outputs,
    )
