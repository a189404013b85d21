"""The clauses of a SELECT, with their columns bound: what comes out, what is grouped, what is
tested and ordered.

    SELECT      a name is a column of FROM, or else the alias of an output before it
    GROUP BY    a column of FROM, or else an alias; a number is an output
    HAVING      a column of GROUP BY first, and then as in ORDER BY
    ORDER BY    an output first, and then a column of FROM; a number is an output
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sql.front.binding import (
    Field,
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
from belvedere.sql.front.names import Names
from belvedere.sql.front.purpose import Purpose

_GROUPING = {"cube": "CUBE", "rollup": "ROLLUP", "grouping_sets": "GROUPING SETS"}
_GROUPING_NODES: dict[type[exp.Expr], str] = {
    exp.Cube: "CUBE",
    exp.Rollup: "ROLLUP",
    exp.GroupingSets: "GROUPING SETS",
}


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
        outputs = [item.node for item in self.items]
        return [*outputs, *self.having, *self.qualify, *(key.this for key in self.order)]

    @property
    def over_rows(self) -> list[exp.Expr]:
        """What is evaluated over the rows of FROM and WHERE."""
        return [*(g.node for g in self.groups), *self.calls] if self.grouped else self.results


def bind_clauses(query: exp.Select, names: Names) -> Clauses:
    items = bind_items(query, names)
    groups = _bind_groups(query, items, names)
    having, qualify, order = (query.args.get(name) for name in ("having", "qualify", "order"))
    for clause in filter(None, (having, qualify, order)):
        names.purpose.check_subqueries(clause, "")
    by_output = _alias_first(items, names)
    kept = _bind_conditions(having, _group_first(groups, names, by_output), names)
    ranked = _bind_conditions(qualify, by_output, names)
    keys = bind_order(order, items, names) if order else []
    calls = calls_in([*(i.node for i in items), *kept, *ranked, *(key.this for key in keys)])
    return Clauses(
        items=tuple(items),
        groups=tuple(groups),
        grouped=bool(calls) or having is not None or query.args.get("group") is not None,
        having=tuple(kept),
        qualify=tuple(ranked),
        order=tuple(keys),
        calls=tuple(calls),
        distinct=query.args.get("distinct") is not None,
    )


def _bind_conditions(clause: exp.Expr | None, find: Find, names: Names) -> list[exp.Expr]:
    """HAVING or QUALIFY; in the arguments of aggregates a name is a column of FROM."""
    conditions = names.purpose.conditions(clause.this if clause else None)
    return [bind(condition, find, names.find) for condition in conditions]


def bind_where(condition: exp.Expr, names: Names) -> exp.Expr:
    """A condition of WHERE, which is tested before anything is grouped or numbered."""
    names.purpose.check_subqueries(condition, "WHERE")
    bound = bind(condition, names.find)
    if calls_in([bound]):
        raise SqlError("an aggregate function cannot stand in WHERE: use HAVING")
    if parts_of([bound], exp.Window):
        raise SqlError(
            "a window function cannot stand in WHERE: compute it in a subquery in FROM, and test it"
            " in WHERE of the query around"
        )
    return bound


# ---------------------------------------------------------------- the select list


def bind_items(query: exp.Select, names: Names) -> list[Item]:
    """The outputs; a name that no relation has may be the alias of an output before it."""
    items: list[Item] = []
    aliases: dict[str, exp.Expr] = {}
    for node in query.expressions:
        if _is_star(node):
            items += _bind_star(node, names)
            continue
        if isinstance(node, exp.Aliases):
            raise names.purpose.refused(text_of(node))
        item = _bind_item(node, aliases, names)
        items.append(item)
        if isinstance(node, exp.Alias):
            aliases[node.alias.lower()] = item.node
    return items


def items_of(fields: Iterable[Field]) -> list[Item]:
    """The columns of a relation as outputs."""
    return [Item(f.name, f.bound, exp.column(f.name)) for f in fields]


def _bind_item(node: exp.Expr, aliases: Mapping[str, exp.Expr], names: Names) -> Item:
    named = isinstance(node, exp.Alias)
    written = node.this if named else node
    names.purpose.check_subqueries(written, "")
    bound = bind(written, _input_first(names, aliases))
    return Item(node.alias if named else default_name(node), names.purpose.value(bound), written)


def _is_star(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Column) else node
    return isinstance(inner, exp.Star)


def _bind_star(node: exp.Expr, names: Names) -> list[Item]:
    """The columns that `*` or `t.*` stands for, without those that EXCEPT lists."""
    relation = node.table.lower() if isinstance(node, exp.Column) else ""
    fields = [
        f for f in names.fields if (f.relation.lower() == relation if relation else f.visible)
    ]
    if not fields or node.args.get("db"):
        nowhere = f"{text_of(node)}: there is no such relation in FROM"
        raise SqlError(nowhere if relation else "* needs a FROM clause")
    star = node.this if isinstance(node, exp.Column) else node
    left_out = {column.name.lower() for column in star.args.get("except_") or []}
    unknown = left_out - {f.name.lower() for f in fields}
    if unknown:
        raise SqlError(f"* EXCEPT: there is no column {', '.join(sorted(unknown))}")
    return [
        Item(f.name, f.bound, exp.column(f.name, table=f.relation or None))
        for f in fields
        if f.name.lower() not in left_out
    ]


# ---------------------------------------------------------------- what a name means


def _input_first(names: Names, aliases: Mapping[str, exp.Expr]) -> Find:
    def find(column: exp.Column) -> exp.Expr:
        alias = None if column.table else aliases.get(column.name.lower())
        found = names.found(column)
        return found if found is not None else alias if alias is not None else names.find(column)

    return find


def _alias_first(items: Sequence[Item], names: Names) -> Find:
    """In ORDER BY a name is an output, if there is one."""

    def find(column: exp.Column) -> exp.Expr:
        if column.table:
            return names.find(column)
        named = [item.node for item in items if item.name.lower() == column.name.lower()]
        if len({text_of(node) for node in named}) > 1:
            raise SqlError(f"column {column.name} is ambiguous: two outputs have that name")
        return named[0] if named else names.find(column)

    return find


def _group_first(groups: Sequence[Item], names: Names, otherwise: Find) -> Find:
    """In HAVING a name is a column of GROUP BY first, and then as in ORDER BY."""
    texts = {text_of(group.node) for group in groups}

    def find(column: exp.Column) -> exp.Expr:
        named = [f for f in names.fields if f.name.lower() == column.name.lower()]
        is_grouped = any(f.text in texts for f in named)
        return names.find(column) if is_grouped else otherwise(column)

    return find


# ---------------------------------------------------------------- GROUP BY and ORDER BY


def _bind_groups(query: exp.Select, items: Sequence[Item], names: Names) -> list[Item]:
    """What is grouped by, each expression once."""
    group = query.args.get("group")
    if group is None:
        return []
    _refuse_grouping(group, names.purpose)
    nodes = grouped_by(group)
    if _means_all(nodes, items, names):
        groups = [item for item in items if not calls_in([item.node])]
    else:
        groups = [_bind_group(node, items, names) for node in nodes]
    once: dict[str, Item] = {}
    for item in groups:
        once.setdefault(text_of(item.node), item)
    return list(once.values())


def _refuse_grouping(group: exp.Expr, purpose: Purpose) -> None:
    """CUBE and its kin stand behind GROUP BY, or among what is grouped by."""
    for name, construct in _GROUPING.items():
        if group.args.get(name):
            raise purpose.refused(construct, purpose.grouping)
    for node in group.expressions:
        if type(node) in _GROUPING_NODES:
            raise purpose.refused(_GROUPING_NODES[type(node)], purpose.grouping)


def _means_all(nodes: Sequence[exp.Expr], items: Sequence[Item], names: Names) -> bool:
    """Whether ALL stands there alone, and is not the name of a column or an output."""
    column = all_named(nodes)
    if column is None or field_of(names.fields, column) is not None:
        return False
    return all(item.name.upper() != "ALL" for item in items)


def _bind_group(node: exp.Expr, items: Sequence[Item], names: Names) -> Item:
    """A grouping expression: itself, or the output that a number or an alias stands for (a column
    of FROM comes first).
    """
    names.purpose.check_subqueries(node, "")
    node = node.unnest()
    aliases = {item.name.lower(): item for item in reversed(items)}
    found = _by_number(node, items, "GROUP BY", names) or _by_alias(node, aliases, names)
    if found is None:
        bound = bind(node, _input_first(names, {n: i.node for n, i in aliases.items()}))
        found = Item("", names.purpose.value(bound), node)
    for what, parts in (
        ("window function", parts_of([found.node], exp.Window)),
        ("aggregate", calls_in([found.node])),
    ):
        if parts:
            raise SqlError(f"GROUP BY cannot contain the {what} {text_of(found.written)}")
    return found


def _by_alias(node: exp.Expr, aliases: Mapping[str, Item], names: Names) -> Item | None:
    """The output that a bare name stands for, if no column of FROM has it."""
    if not isinstance(node, exp.Column) or node.table or names.found(node) is not None:
        return None
    return aliases.get(node.name.lower())


def bind_order(order: exp.Expr, items: Sequence[Item], names: Names) -> list[exp.Expr]:
    """The keys of ORDER BY, bound; numbers and ALL stand for outputs."""
    keys = order.expressions
    if _means_all([key.this for key in keys], items, names):
        return [_ordered(keys[0], item.node) for item in items]
    return [_ordered(key, _sorted_by(key.this, items, names)) for key in keys]


def _sorted_by(node: exp.Expr, items: Sequence[Item], names: Names) -> exp.Expr:
    numbered = _by_number(node, items, "ORDER BY", names)
    if numbered is not None:
        return numbered.node
    return bind(as_column(node) or node, _alias_first(items, names), names.find)


def _ordered(key: exp.Expr, node: exp.Expr) -> exp.Expr:
    return exp.Ordered(
        this=node, desc=key.args.get("desc"), nulls_first=key.args.get("nulls_first")
    )


def _by_number(node: exp.Expr, items: Sequence[Item], clause: str, names: Names) -> Item | None:
    """The output that a whole number stands for."""
    number = whole_number(node)
    if number is None:
        return None
    if not 1 <= number <= len(items):
        raise SqlError(f"{clause} {number}: the {names.purpose.name} has {len(items)} column(s)")
    return items[number - 1]
