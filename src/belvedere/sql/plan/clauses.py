"""The clauses of a SELECT, with their columns bound: what comes out, what is grouped, what is
tested and ordered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.sql.binding import (
    Find,
    all_named,
    as_column,
    bind,
    calls_in,
    default_name,
    field_of,
    grouped_by,
    parts_of,
    text_of,
    whole_number,
)
from belvedere.sql.plan.conditions import conjuncts
from belvedere.sql.plan.names import Names
from belvedere.sql.plan.refusal import refuse_grouping, refuse_subqueries


@dataclass(frozen=True, slots=True)
class Item:
    """An output column; `written` is the expression as the user wrote it, for texts that go to
    another engine.
    """

    name: str
    node: exp.Expr
    written: exp.Expr


@dataclass(frozen=True, slots=True)
class Clauses:
    items: tuple[Item, ...]
    groups: tuple[Item, ...]
    grouped: bool  # has GROUP BY, or aggregates without it
    having: tuple[exp.Expr, ...]
    qualify: tuple[exp.Expr, ...]
    order: tuple[exp.Expr, ...]  # Ordered, with bound expressions
    calls: tuple[exp.Expr, ...]
    distinct: bool

    @property
    def results(self) -> list[exp.Expr]:
        """What is evaluated after grouping."""
        return [
            *(i.node for i in self.items),
            *self.having,
            *self.qualify,
            *(key.this for key in self.order),
        ]

    @property
    def over_rows(self) -> list[exp.Expr]:
        """What is evaluated over the rows of FROM and WHERE."""
        return [*(g.node for g in self.groups), *self.calls] if self.grouped else self.results


def clauses_of(query: exp.Select, names: Names) -> Clauses:
    items = items_of(query, names)
    groups = _groups(query, items, names)
    by_output = alias_first(items, names)
    having, qualify, order = (query.args.get(name) for name in ("having", "qualify", "order"))
    for clause in filter(None, (having, qualify, order)):
        refuse_subqueries(clause, "")
    kept = [
        bind(c, _group_first(groups, names, by_output), names.find)
        for c in conjuncts(having.this if having else None)
    ]
    ranked = [bind(c, by_output, names.find) for c in conjuncts(qualify.this if qualify else None)]
    keys = sort_keys(order, items, names) if order else []
    calls = calls_in([*(i.node for i in items), *kept, *ranked, *(key.this for key in keys)])
    grouped = bool(calls) or having is not None or query.args.get("group") is not None
    distinct = query.args.get("distinct") is not None
    return Clauses(
        tuple(items),
        tuple(groups),
        grouped,
        tuple(kept),
        tuple(ranked),
        tuple(keys),
        tuple(calls),
        distinct,
    )


def items_of(query: exp.Select, names: Names) -> list[Item]:
    """The outputs; a name that no relation has may be the alias of an output before it."""
    items: list[Item] = []
    aliases: dict[str, exp.Expr] = {}
    for node in query.expressions:
        if isinstance(node, exp.Star) or (
            isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
        ):
            items += _star(node, names)
            continue
        if isinstance(node, exp.Aliases):
            raise Unsupported(text_of(node))
        written = node.this if isinstance(node, exp.Alias) else node
        refuse_subqueries(written, "")
        name = node.alias if isinstance(node, exp.Alias) else default_name(node)
        items.append(Item(name, bind(written, _input_first(names, aliases)), written))
        if isinstance(node, exp.Alias):
            aliases[node.alias.lower()] = items[-1].node
    return items


def _star(node: exp.Expr, names: Names) -> list[Item]:
    relation = node.table.lower() if isinstance(node, exp.Column) else ""
    fields = [
        f for f in names.fields if (f.relation.lower() == relation if relation else f.visible)
    ]
    if not fields or node.args.get("db"):
        raise SqlError(f"{text_of(node)}: there is no such relation in FROM")
    return [Item(f.name, f.bound, exp.column(f.name, table=f.relation or None)) for f in fields]


def _input_first(names: Names, aliases: Mapping[str, exp.Expr]) -> Find:
    def find(column: exp.Column) -> exp.Expr:
        alias = None if column.table else aliases.get(column.name.lower())
        found = names.found(column)
        return found if found is not None else alias if alias is not None else names.find(column)

    return find


def alias_first(items: Sequence[Item], names: Names) -> Find:
    """In ORDER BY a name is an output, if there is one."""

    def find(column: exp.Column) -> exp.Expr:
        named = (
            []
            if column.table
            else [item.node for item in items if item.name.lower() == column.name.lower()]
        )
        if len({text_of(node) for node in named}) > 1:
            raise SqlError(f"column {column.name} is ambiguous: two outputs have that name")
        return named[0] if named else names.find(column)

    return find


def _group_first(groups: Sequence[Item], names: Names, otherwise: Find) -> Find:
    """In HAVING a name is a column of GROUP BY first, and then as in ORDER BY."""
    texts = {text_of(group.node) for group in groups}

    def find(column: exp.Column) -> exp.Expr:
        fields = [
            f for f in names.fields if f.name.lower() == column.name.lower() and f.text in texts
        ]
        return names.find(column) if fields else otherwise(column)

    return find


def _groups(query: exp.Select, items: Sequence[Item], names: Names) -> list[Item]:
    group = query.args.get("group")
    if group is None:
        return []
    refuse_grouping(group)
    if _means_all(grouped_by(group), items, names):
        return [item for item in items if not calls_in([item.node])]
    aliases = {item.name.lower(): item for item in reversed(items)}
    return [_group(node, items, aliases, names) for node in grouped_by(group)]


def _means_all(nodes: Sequence[exp.Expr], items: Sequence[Item], names: Names) -> bool:
    column = all_named(nodes)
    return (
        column is not None
        and field_of(names.fields, column) is None
        and all(item.name.upper() != "ALL" for item in items)
    )


def _group(
    node: exp.Expr, items: Sequence[Item], aliases: Mapping[str, Item], names: Names
) -> Item:
    """A grouping expression: itself, or the output that a number or an alias stands for (a column
    of FROM comes first).
    """
    refuse_subqueries(node, "")
    node = node.unnest()
    if (number := whole_number(node)) is not None:
        if not 1 <= number <= len(items):
            raise SqlError(f"GROUP BY {number}: the view has {len(items)} column(s)")
        found = items[number - 1]
    elif (
        isinstance(node, exp.Column)
        and not node.table
        and names.found(node) is None
        and node.name.lower() in aliases
    ):
        found = aliases[node.name.lower()]
    else:
        found = Item(
            "", bind(node, _input_first(names, {n: i.node for n, i in aliases.items()})), node
        )
    if calls_in([found.node]) or parts_of([found.node], exp.Window):
        raise SqlError(f"GROUP BY cannot contain the aggregate {text_of(found.written)}")
    return found


def sort_keys(order: exp.Expr, items: Sequence[Item], names: Names) -> list[exp.Expr]:
    """The keys of ORDER BY, bound; numbers and ALL stand for outputs."""
    by_output = alias_first(items, names)
    if _means_all([key.this for key in order.expressions], items, names):
        (key,) = order.expressions
        return [_ordered(key, item.node) for item in items]
    return [
        _ordered(key, _sorted_by(key.this, items, by_output, names)) for key in order.expressions
    ]


def _sorted_by(node: exp.Expr, items: Sequence[Item], by_output: Find, names: Names) -> exp.Expr:
    if (number := whole_number(node)) is None:
        return bind(as_column(node) or node, by_output, names.find)
    if not 1 <= number <= len(items):
        raise SqlError(f"ORDER BY {number}: the view has {len(items)} column(s)")
    return items[number - 1].node


def _ordered(key: exp.Expr, node: exp.Expr) -> exp.Expr:
    return exp.Ordered(
        this=node, desc=key.args.get("desc"), nulls_first=key.args.get("nulls_first")
    )
