"""A stage of a query: what stands after FROM, and the values that expressions above it may use.

    FROM and JOIN -> WHERE -> GROUP BY -> HAVING -> window functions -> SELECT

Columns are bound once, to keys that are unique in the whole query; later a value is known by the text of its bound
expression. So `sum(x)` is a value of the stage after GROUP BY, and `x` is not. Stages of an outer query give the values
of correlated columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sql.expressions import SparkSql, Typed, lower
from belvedere.sql.expressions.predicates import condition
from belvedere.sql.query.refusal import NotAnswered, reworded
from belvedere.types import SqlType

BOUND, _VALUE = "_bound", "_value"
Find = Callable[[exp.Column], exp.Expr]


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a relation: its name for the user, its type (None for an untyped NULL), its quoted name in DuckDB."""

    name: str
    type: SqlType | None
    column: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, or the text of a SELECT."""

    text: str
    outputs: tuple[Output, ...]
    is_table: bool = False

    @property
    def source(self) -> str:
        return self.text if self.is_table else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Field:
    """A column that the user may name; one that USING merged away is found only by its qualified name."""

    key: str
    relation: str
    name: str
    visible: bool = True

    @property
    def bound(self) -> exp.Expr:
        return exp.column(self.key, table=BOUND)

    @property
    def text(self) -> str:
        return text_of(self.bound)


@dataclass(frozen=True, slots=True)
class Stage:
    sql: str
    fields: tuple[Field, ...]
    values: Mapping[str, Typed]
    outer: Stage | None = None
    missing: str = "is not known here"

    def find(self, column: exp.Column) -> exp.Expr:
        """The bound form of a column."""
        found = self.found(column)
        if found is None:
            known = ", ".join(dict.fromkeys(f.name for f in self.fields if f.visible)) or "none"
            raise SqlError(f"there is no column {_spelled(column)}: the columns are {known}")
        return found

    def found(self, column: exp.Column) -> exp.Expr | None:
        if isinstance(column.this, exp.Star):
            raise NotAnswered(f"{text_of(column)} inside an expression")
        wanted, relation = column.name.lower(), column.table.lower()
        fields = [f for f in self.fields if f.name.lower() == wanted]
        fields = [f for f in fields if (f.relation.lower() == relation if relation else f.visible)] if not column.args.get("db") else []
        if len({f.key for f in fields}) > 1:
            raise SqlError(f"column {_spelled(column)} is ambiguous: write it with its table")
        if fields:
            return fields[0].bound
        return self.outer.found(column) if self.outer else None

    def value(self, text: str) -> Typed | None:
        own = self.values.get(text)
        return own if own is not None or self.outer is None else self.outer.value(text)

    def lower(self, node: exp.Expr) -> Typed:
        """DuckDB text of a bound expression over this stage."""
        found: list[tuple[str, Typed]] = []

        def swap(part: exp.Expr) -> exp.Expr:
            text = text_of(part)
            value = self.value(text)
            if value is None:
                if isinstance(part, exp.Column):
                    raise SqlError(f"column {text} {self.missing}")
                return part
            found.append((text, value))
            return exp.column(f"v{len(found) - 1}", table=_VALUE)

        try:
            return lower(rebuilt(node, swap), lambda column: found[int(column.name[1:])][1])
        except SqlError as error:
            raise reworded(error, {f"{_VALUE}.v{i}": text for i, (text, _) in enumerate(found)}) from error

    def condition(self, node: exp.Expr, where: str) -> Typed:
        return condition(self.lower(node), where)

    def filtered(self, node: exp.Expr | None, where: str) -> Stage:
        return replace(self, sql=f"{self.sql} WHERE {self.condition(node, where).sql}") if node is not None else self

    def carried(self, extra: Mapping[str, Typed], alias: str) -> Stage:
        """This stage as a subquery that computes `extra` beside the values that it has."""
        every = {**self.values, **extra}
        columns = ", ".join(f"{value.sql} AS v{i}" for i, value in enumerate(every.values()))
        values = {text: column_of(f"{alias}.v{i}", value.type) for i, (text, value) in enumerate(every.items())}
        return replace(self, sql=f"(SELECT {columns} FROM {self.sql}) AS {alias}", values=values)


def text_of(node: exp.Expr) -> str:
    return str(node.sql(dialect=SparkSql))


def column_of(sql: str, kind: SqlType | None) -> Typed:
    """A column as a value. It may always be NULL, because outer joins make NULLs; an untyped NULL stays one."""
    return Typed(sql, kind) if kind is not None else Typed("NULL", None)


def stage_of(relation: Relation, alias: str, name: str, key_of: Callable[[str], str], outer: Stage | None) -> Stage:
    """A relation in FROM: `name` is what the user calls it, `alias` what DuckDB does."""
    fields = tuple(Field(key_of(f"{name}.{o.name}" if name else o.name), name, o.name) for o in relation.outputs)
    values = {f.text: column_of(f"{alias}.{o.column}", o.type) for f, o in zip(fields, relation.outputs, strict=True)}
    return Stage(f"{relation.source} AS {alias}", fields, values, outer)


def rebuilt(node: exp.Expr, swap: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy in which `swap` replaced parts, from the top down; subqueries stay as they are, except the left side of IN."""
    swapped = swap(node)
    if swapped is not node:
        return swapped
    if isinstance(node, exp.Query | exp.Exists):
        return node.copy()

    def part(value: object) -> object:
        if isinstance(value, list):
            return [part(v) for v in value]
        return rebuilt(value, swap) if isinstance(value, exp.Expr) else value

    return type(node)(**{name: part(value) for name, value in node.args.items()})


def bind(node: exp.Expr, find: Find, inside: Find | None = None) -> exp.Expr:
    """The expression with its columns bound by `find`, and those in the arguments of aggregates by `inside`."""

    def swap(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column):
            found = find(part)
            return found if part is node or isinstance(found, exp.Column) else exp.Paren(this=found.copy())
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


def _spelled(column: exp.Column) -> str:
    return ".".join(part.name for part in column.parts)
