"""The view recomputed from the base rows, without any operator of the engine.

Scalar expressions are lowered as in the engine (a conformance suite holds them against Spark);
WHERE, GROUP BY, DISTINCT and the aggregates are DuckDB's own, except that sums of doubles and
averages of decimals are exact Python numbers. A row whose expression raises is left out and
counted, and so is a group.

    rows -> leaf       WHERE, then the groups and the arguments of the aggregates, or the view's
                       columns -> reduced    one row per group with the results of the aggregate
                       calls -> shown      HAVING, then the view's columns
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from belvedere.encoding import KeyCodec
from belvedere.expressions import SparkSql, Typed, aggregate_type, connect, lower, parse
from belvedere.types import BIGINT, INT, Schema, SqlType

Row = tuple[Any, ...]
FAILED = "failed"  # instead of a row whose expression raises
_NAMES: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
_engine = connect()
# which would evaluate constants in branches that no row takes
_engine.execute("PRAGMA disable_optimizer")


@dataclass(frozen=True)
class Expected:
    """What the view must show, and how many rows and groups must be in error."""

    rows: list[Row]
    errors: int
    groups: dict[bytes, Row] = field(default_factory=dict)  # group of each base row, for statistics
    # of MIN, MAX and COUNT(DISTINCT) by group, for statistics
    results: dict[str, dict[Row, Row]] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One aggregate call: leaf columns of its arguments, the result's type."""

    function: str
    arguments: tuple[int, ...]
    kinds: tuple[SqlType, ...]
    type: SqlType


class Evaluator:
    """Evaluates a condition and expressions over rows, remembering what it gave for each row."""

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[SqlType],
        condition: str | None,
        outputs: Sequence[str],
    ) -> None:
        self.names, self.types = names, types
        self.condition, self.outputs = condition, outputs
        self._known: dict[Any, Row | str | None] = {}

    def __call__(self, rows: dict[Any, Row]) -> dict[Any, Row | str | None]:
        """By the rows' identities: the values, FAILED, or None where the
        condition does not hold.
        """
        new = {key: row for key, row in rows.items() if key not in self._known}
        passed = new
        if self.condition is not None and new:
            verdicts = self._evaluate([self.condition], new)
            self._known |= {key: FAILED if v == FAILED else None for key, v in verdicts.items()}
            passed = {key: row for key, row in new.items() if verdicts[key] == (True,)}
        if passed:
            self._known |= self._evaluate(self.outputs, passed)
        return {key: self._known[key] for key in rows}

    def _evaluate(self, expressions: Sequence[str], rows: dict[Any, Row]) -> dict[Any, Row | str]:
        try:
            return dict(zip(rows, self._query(expressions, list(rows.values())), strict=True))
        except duckdb.Error:
            return {key: self._one(expressions, row) for key, row in rows.items()}

    def _one(self, expressions: Sequence[str], row: Row) -> Row | str:
        try:
            return self._query(expressions, [row])[0]
        except duckdb.Error:
            return FAILED

    def _query(self, expressions: Sequence[str], rows: list[Row]) -> list[Row]:
        texts = ", ".join(f"{e} AS r{i}" for i, e in enumerate(expressions)) or "1"
        return query(f"SELECT {texts} FROM leaf", arrow(self.names, self.types, rows))


def arrow(names: Sequence[str], types: Sequence[SqlType], rows: list[Row]) -> pa.Table:
    return pa.table(
        [pa.array([r[i] for r in rows], t.arrow) for i, t in enumerate(types)], names=list(names)
    )


def query(text: str, leaf: pa.Table) -> list[Row]:
    _engine.register("leaf", leaf)
    try:
        columns = [c.to_pylist() for c in _engine.sql(text).to_arrow_table().columns]
        return list(zip(*columns, strict=True))
    finally:
        _engine.unregister("leaf")


class Oracle:
    def __init__(
        self,
        select: str,
        schema: Schema,
        record_key: Sequence[str],
        longest_key: int | None = None,
    ) -> None:
        tree = parse(select)
        self.longest_key = math.inf if longest_key is None else longest_key
        self.items = _items(tree, schema)
        self.resolve = _resolver(schema.names, [c.type for c in schema.columns])
        self.having = tree.args["having"].this if tree.args.get("having") else None
        self.aggregated = (
            any(node.find(exp.AggFunc) for node, _ in self.items)
            or tree.args.get("group") is not None
        )
        self.distinct = tree.args.get("distinct") is not None
        self.groups = _groups(tree, self.items)
        self.record_key = [[name for _, name in self.items].index(name) for name in record_key]
        self.leaf: list[Typed] = []
        self.calls: dict[str, Call] = {}
        where = tree.args.get("where")
        condition = lower(where.this, self.resolve).sql if where else None
        if self.aggregated:
            self._plan_aggregate()
        else:
            self._plan_rows()
        self.evaluate = Evaluator(
            schema.names, [c.type for c in schema.columns], condition, [t.sql for t in self.leaf]
        )

    @property
    def types(self) -> list[SqlType]:
        """Of the view's columns."""
        return [t.type for t in self.shown]  # type: ignore[misc]  # no view has an untyped column

    @property
    def leaf_types(self) -> list[SqlType]:
        return [t.type for t in self.leaf]  # type: ignore[misc]  # as above

    def _plan_rows(self) -> None:
        self.leaf = self.shown = [lower(node, self.resolve) for node, _ in self.items]

    def _plan_aggregate(self) -> None:
        self.leaf = [lower(node, self.resolve) for node in self.groups]
        post = [node for node, _ in self.items] + ([self.having] if self.having is not None else [])
        for node in post:
            for call in _outermost_calls(node):
                self.calls.setdefault(_text(call), self._call(call))
        types = [t.type for t in self.leaf[: len(self.groups)]] + [
            c.type for c in self.calls.values()
        ]
        names = [f"o{i}" for i in range(len(types))]
        places = {_text(g): f"o{i}" for i, g in enumerate(self.groups)}
        places |= {text: f"o{len(self.groups) + i}" for i, text in enumerate(self.calls)}
        resolve = _resolver(names, types)
        self.shown = [lower(_replaced(node, places), resolve) for node, _ in self.items]
        having = (
            lower(_replaced(self.having, places), resolve).sql if self.having is not None else None
        )
        self.present = Evaluator(names, types, having, [t.sql for t in self.shown])  # type: ignore[arg-type]  # as above

    def _call(self, node: exp.Expr) -> Call:
        condition = node.expression.this if isinstance(node, exp.Filter) else None
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(inner, exp.CountIf):
            return Call("count", (self._argument(None, inner.this),), (INT,), BIGINT)
        distinct = isinstance(inner.this, exp.Distinct)
        parts = inner.this.expressions if distinct else [inner.this]
        function = _NAMES.get(type(inner), "distinct" if distinct else "count")
        if isinstance(parts[0], exp.Star):
            return (
                Call("rows", (), (), BIGINT)
                if condition is None
                else Call("count", (self._argument(None, condition),), (INT,), BIGINT)
            )
        places = tuple(self._argument(p, condition) for p in parts)
        kinds = tuple(self.leaf[p].type for p in places)
        result = BIGINT if function in ("count", "distinct") else aggregate_type(function, kinds[0])
        return Call(function, places, kinds, result)  # type: ignore[arg-type]  # as above

    def _argument(self, node: exp.Expr | None, condition: exp.Expr | None) -> int:
        """A leaf column with the argument of a call where the condition holds, else NULL; without
        an argument it is 1.
        """
        value = lower(node, self.resolve) if node is not None else Typed("CAST(1 AS INTEGER)", INT)
        if condition is not None:
            value = Typed(
                f"CASE WHEN {lower(condition, self.resolve).sql} THEN {value.sql} END", value.type
            )
        self.leaf.append(value)
        return len(self.leaf) - 1

    def recompute(self, rows: dict[bytes, Row], images: dict[bytes, bytes]) -> Expected:
        """`images` identifies the content of each row, so that what was computed for it can be
        found again.
        """
        found = self.evaluate({(key, images[key]): row for key, row in rows.items()})
        leaf = {key[0]: values for key, values in found.items() if isinstance(values, tuple)}
        errors = sum(values == FAILED for values in found.values())
        fitting = {
            key: values for key, values in leaf.items() if not self._too_long(values, len(key))
        }
        errors += len(leaf) - len(fitting)
        if not self.aggregated:
            return self._rows(list(fitting.values()), errors)
        groups = {key: canonical_row(values[: len(self.groups)]) for key, values in fitting.items()}
        return self._grouped(list(fitting.values()), errors, groups)

    def _too_long(self, leaf: Row, identity: int) -> bool:
        """Keys made of leaf columns: the group, and the group with an ordered argument; with
        DISTINCT a row is a group.

        MIN and MAX keep rows, whose identity is part of the key, unless a COUNT(DISTINCT) of the
        same argument keeps counts.
        """
        if not self.aggregated and not self.distinct:
            return False  # the record key is looked at when the row is shown
        groups = tuple(range(len(self.groups) if self.aggregated else len(self.leaf)))
        ordered = [c for c in self.calls.values() if c.function in ("min", "max", "distinct")]
        counted = {self._texts(c.arguments) for c in ordered if c.function == "distinct"}
        keys = [(groups, 0)]
        keys += [
            ((*groups, *c.arguments), 0 if self._texts(c.arguments) in counted else identity)
            for c in ordered
        ]
        types = self.leaf_types
        return any(_length(leaf, types, key) + more > self.longest_key for key, more in keys)

    def _texts(self, arguments: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(self.leaf[i].sql for i in arguments)

    def _rows(self, leaf: list[Row], errors: int) -> Expected:
        if self.distinct and leaf:
            types = self.leaf_types
            names = [f"e{i}" for i in range(len(types))]
            leaf = query(
                f"SELECT DISTINCT {', '.join(map(_normal, names, types))} FROM leaf",
                arrow(names, types, leaf),
            )
        return self._checked([*leaf], errors)

    def _checked(self, rows: list[Row], errors: int) -> Expected:
        short = [r for r in rows if self._fits(r)]
        return Expected(short, errors + len(rows) - len(short))

    def _fits(self, row: Row) -> bool:
        return _length(row, self.types, self.record_key) <= self.longest_key

    def _grouped(self, leaf: list[Row], errors: int, groups: dict[bytes, Row]) -> Expected:
        count = len(self.groups)
        reduced = {canonical_row(row[:count]): row for row in self._reduce(leaf)}
        good = {key: row for key, row in reduced.items() if FAILED not in row}
        shown = self.present({row_identity(row): row for row in good.values()})
        errors += len(reduced) - len(good) + sum(row == FAILED for row in shown.values())
        found = self._checked([r for r in shown.values() if isinstance(r, tuple)], errors)
        return Expected(
            found.rows,
            found.errors,
            groups,
            {name: self._of(name, reduced) for name in ("min", "max", "distinct")},
        )

    def _of(self, function: str, reduced: dict[Row, Row]) -> dict[Row, Row]:
        places = [
            len(self.groups) + i
            for i, call in enumerate(self.calls.values())
            if call.function == function
        ]
        return {key: tuple(row[i] for i in places) for key, row in reduced.items()}

    def _reduce(self, leaf: list[Row]) -> list[Row]:
        if not leaf and self.groups:
            return []
        types = self.leaf_types
        names = [f"e{i}" for i in range(len(types))]
        keys = [_normal(n, t) for n, t in zip(names[: len(self.groups)], types, strict=False)]
        wanted = [text for call in self.calls.values() for text in _duckdb(call)]
        grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
        # A column that nothing groups by, so that a table without leaf columns has its rows.
        data = arrow([*names, "one"], [*types, INT], [(*row, 1) for row in leaf])
        rows = query(f"SELECT {', '.join([*keys, *wanted, 'count(*)'])} FROM leaf{grouping}", data)
        return [(*row[: len(keys)], *self._results(row[len(keys) :])) for row in rows]

    def _results(self, values: Row) -> Row:
        found, at = [], 0
        for call in self.calls.values():
            found.append(_result(call, values[at : at + len(_duckdb(call))]))
            at += len(_duckdb(call))
        return tuple(found)


def _duckdb(call: Call) -> list[str]:
    """What DuckDB is asked for."""
    columns = [_normal(f"e{i}", kind) for i, kind in zip(call.arguments, call.kinds, strict=True)]
    if call.function == "rows":
        return ["count(*)"]
    if call.function == "distinct":
        complete = " AND ".join(f"{c} IS NOT NULL" for c in columns)
        return [f"count(DISTINCT CASE WHEN {complete} THEN row({', '.join(columns)}) END)"]
    if call.function in ("sum", "avg"):
        total = f"list({columns[0]})" if call.kinds[0].name == "double" else f"sum({columns[0]})"
        return [total, f"count({columns[0]})"]
    return [f"{call.function}({columns[0]})"]


def _result(call: Call, values: Row) -> Any:
    if call.function not in ("sum", "avg"):
        return values[0]
    total, count = values
    if not count:
        return None
    if call.kinds[0].name == "double":
        total = _exact_sum([v for v in total if v is not None])
    if call.function == "avg":
        return _average(call, total, count)
    return FAILED if call.type.name == "bigint" and not -(2**63) <= total < 2**63 else total


def _exact_sum(values: list[float]) -> float:
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return sum(special)
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _average(call: Call, total: Any, count: int) -> Any:
    if call.type.name == "double":
        return float(total) / count
    with localcontext() as context:
        context.prec = 80
        return (total / count).quantize(Decimal(1).scaleb(-call.type.scale), ROUND_HALF_UP)


def _normal(name: str, kind: SqlType) -> str:
    """In groups and among distinct values -0.0 is 0.0."""
    return (
        f"CASE WHEN {name} = 0 THEN 0.0::DOUBLE ELSE {name} END" if kind.name == "double" else name
    )


def _length(row: Row, types: Sequence[SqlType], key: Sequence[int]) -> int:
    return len(KeyCodec(tuple(types[i] for i in key)).encode_one([row[i] for i in key]))


def _items(tree: exp.Expr, schema: Schema) -> list[tuple[exp.Expr, str]]:
    found: list[tuple[exp.Expr, str]] = []
    for node in tree.expressions:
        if isinstance(node, exp.Star):
            found += [(exp.column(name), name) for name in schema.names]
        else:
            found.append(
                (node.this, node.alias) if isinstance(node, exp.Alias) else (node, node.name)
            )
    return found


def _groups(tree: exp.Expr, items: list[tuple[exp.Expr, str]]) -> list[exp.Expr]:
    group = tree.args.get("group")
    by_alias = {name: node for node, name in items}
    found = []
    for node in group.expressions if group else []:
        if isinstance(node, exp.Literal):
            node = items[int(node.this) - 1][0]
        elif isinstance(node, exp.Column):
            node = by_alias.get(node.name, node)
        found.append(node)
    return found


def _resolver(
    names: Sequence[str], types: Sequence[SqlType | None]
) -> Callable[[exp.Column], Typed]:
    kinds = dict(zip(names, types, strict=True))
    return lambda column: Typed(f'"{column.name}"', kinds[column.name])


def _outermost_calls(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Filter | exp.AggFunc):
        return [node]
    return [call for child in node.iter_expressions() for call in _outermost_calls(child)]


def _replaced(node: exp.Expr, places: dict[str, str]) -> exp.Expr:
    if _text(node) in places:
        return exp.column(places[_text(node)])
    copy = node.copy()
    for child in list(copy.iter_expressions()):
        replacement = _replaced(child, places)
        if replacement is not child:
            child.replace(replacement)
    return copy


def _text(node: exp.Expr) -> str:
    return node.sql(dialect=SparkSql)


def row_identity(row: Row) -> str:
    return repr(row)


def canonical(value: Any) -> Any:
    """Equal for values that are equal in SQL: all NaN, -0.0 and 0.0, and a float near another
    prints as it does.
    """
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def canonical_row(row: Row) -> Row:
    return tuple(map(canonical, row))
