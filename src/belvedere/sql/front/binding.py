"""Names bound to columns, and expressions known by their text.

Columns are bound once, to keys that are unique in the whole query. After that a value is known by
the text of its bound expression: `sum(x)` is a value after GROUP BY, and `x` is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import SparkSql, Typed

BOUND, VALUE = "_bound", "_value"
_COLUMN = re.compile(rf"{BOUND}\.\w+")
_MAX_INT = 2**31 - 1
Find = Callable[[exp.Column], exp.Expr]
Values = Callable[[str], Typed | None]


@dataclass(frozen=True, slots=True)
class Field:
    """A column that the user may name; one that USING merged away is found only by its qualified
    name.
    """

    key: str
    relation: str
    name: str
    visible: bool = True

    @property
    def bound(self) -> exp.Expr:
        return exp.column(self.key, table=BOUND)

    @property
    def text(self) -> str:
        return f"{BOUND}.{self.key}"


def text_of(node: exp.Expr) -> str:
    if isinstance(node, exp.Column) and node.table in (BOUND, VALUE):
        return f"{node.table}.{node.name}"  # the same, without a generator: there are many of them
    return str(node.sql(dialect=SparkSql))


def field_of(fields: Iterable[Field], column: exp.Column) -> Field | None:
    """The field that a name means; names are compared without case, as Spark does."""
    if column.args.get("db"):
        return None
    wanted, relation = column.name.lower(), column.table.lower()
    named = [f for f in fields if f.name.lower() == wanted]
    found = [f for f in named if (f.relation.lower() == relation if relation else f.visible)]
    if len({f.key for f in found}) > 1:
        instead = "two columns have that name" if relation else "write it with its table"
        raise SqlError(f"column {spelled(column)} is ambiguous: {instead}")
    return found[0] if found else None


def no_such_column(column: exp.Column, fields: Iterable[Field]) -> SqlError:
    known = ", ".join(dict.fromkeys(f.name for f in fields if f.visible)) or "none"
    return SqlError(f"there is no column {spelled(column)}: the columns are {known}")


def rebuilt(node: exp.Expr, swap: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy in which `swap` replaced parts, from the top down; subqueries stay as they are, except
    the left side of IN.
    """
    swapped = swap(node)
    if swapped is not node:
        return swapped
    if isinstance(node, exp.Query | exp.Exists):
        return node.copy()

    def part(value: object) -> object:
        if isinstance(value, list):
            return [part(v) for v in value]
        return rebuilt(value, swap) if isinstance(value, exp.Expr) else value

    made = type(node)(**{name: part(value) for name, value in node.args.items()})
    made.meta.update(node.meta)
    return made


def bind(node: exp.Expr, find: Find, inside: Find | None = None) -> exp.Expr:
    """The expression with its columns bound by `find`, and those in the arguments of aggregates by
    `inside`.
    """

    def swap(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column):
            found = find(part)
            return (
                found
                if part is node or isinstance(found, exp.Column)
                else exp.Paren(this=found.copy())
            )
        if inside is not None and isinstance(part, exp.AggFunc | exp.Filter):
            return bind(part, inside)
        return part

    return rebuilt(node, swap)


def parts_of(nodes: Sequence[exp.Expr], *kinds: type[exp.Expr]) -> list[exp.Expr]:
    """The outermost parts of these kinds, each text once; subqueries are not looked into."""
    found: dict[str, exp.Expr] = {}

    def visit(node: exp.Expr) -> None:
        if isinstance(node, kinds):
            found.setdefault(text_of(node), node)
        elif not isinstance(node, exp.Query | exp.Exists):
            for child in node.iter_expressions():
                visit(child)

    for node in nodes:
        visit(node)
    return list(found.values())


def is_in_query(node: exp.Expr) -> bool:
    """x IN (SELECT ...), and not a list of values."""
    return isinstance(node, exp.In) and node.args.get("query") is not None


def calls_in(nodes: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The distinct aggregate calls.

    A window function is none, but its PARTITION BY and ORDER BY may call some.
    """
    windows = parts_of(nodes, exp.Window)
    below = [
        part
        for w in windows
        for part in (*w.args.get("partition_by", []), w.args.get("order"))
        if part is not None
    ]
    direct = [
        part
        for part in parts_of(nodes, exp.Window, exp.AggFunc, exp.Filter)
        if not isinstance(part, exp.Window)
    ]
    return parts_of([*direct, *below], exp.AggFunc, exp.Filter)


def counts_rows(arguments: Sequence[exp.Expr]) -> bool:
    """Whether count(...) of these counts all rows: a star alone, or constants, which are never
    NULL.
    """
    alone = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    return alone or all(isinstance(argument, exp.Literal) for argument in arguments)


def over_values(
    node: exp.Expr, value_of: Values, missing: str, computed: bool = True
) -> tuple[exp.Expr, list[tuple[str, Typed]]]:
    """The expression over numbered values `_value.v0`, `_value.v1`, ..., and these values with
    their texts.

    `computed` says that some values are more than columns: then the text of every part of the
    expression has to be looked up.
    """
    found: list[tuple[str, Typed]] = []

    def swap(part: exp.Expr) -> exp.Expr:
        if not computed and not isinstance(part, exp.Column):
            return part
        text = text_of(part)
        value = value_of(text)
        if value is None:
            if isinstance(part, exp.Column):
                raise SqlError(f"column {text} {missing}")
            return part
        found.append((text, value))
        return exp.column(f"v{len(found) - 1}", table=VALUE)

    return rebuilt(node, swap), found


def grouped_by(group: exp.Expr) -> Sequence[exp.Expr]:
    """What stands behind GROUP BY; ALL alone may be the name of a column."""
    return [exp.column("all")] if group.args.get("all") else group.expressions


def all_named(nodes: Sequence[exp.Expr]) -> exp.Column | None:
    """The column called ALL, if nothing else is listed: GROUP BY ALL and ORDER BY ALL, unless
    something has that name.
    """
    if len(nodes) != 1:
        return None
    node = nodes[0].unnest()
    column = as_column(node)
    return (
        column if column is not None and not column.table and column.name.upper() == "ALL" else None
    )


def as_column(node: exp.Expr) -> exp.Column | None:
    """The parser reads ALL in ORDER BY as a keyword, also where it is the name of a column."""
    if isinstance(node, exp.Var):
        return exp.column(node.name)
    return node if isinstance(node, exp.Column) else None


def has_computed(texts: Iterable[str]) -> bool:
    """Whether some of these values are more than bound columns."""
    return any(not _COLUMN.fullmatch(text) for text in texts)


def spelled(column: exp.Column) -> str:
    return ".".join(part.name for part in column.parts)


def whole_number(node: exp.Expr) -> int | None:
    """The number of a column in GROUP BY or ORDER BY: a literal, perhaps with a minus sign or in
    parentheses.
    """
    node = node.unnest()
    sign, node = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    return (
        sign * int(node.this)
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
        else None
    )


def check_int(number: int, clause: str) -> None:
    """Spark takes an INT in LIMIT and OFFSET, not a BIGINT."""
    if number > _MAX_INT:
        raise SqlError(
            f"{clause} {number} is beyond an INT: write at most {_MAX_INT}, or leave it out"
        )


def default_name(node: exp.Expr) -> str:
    """Spark's name for a column without AS: count(1), sum(amount), (a + 1).

    Parentheses around it all do not count.
    """
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count(1)"
    text = text_of(node)
    return (
        text.lower()
        if isinstance(node, exp.Func)
        else f"({text})"
        if isinstance(node, exp.Binary)
        else text
    )
