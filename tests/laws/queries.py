"""Random views as SQL text: expressions by type from templates, aggregates, and the shapes of
SELECT that are maintained.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from belvedere.types import SqlType
from tests.laws.domains import BUCKET, Table, literals

_LETTERS = dict(
    zip(
        "bildmsxtu",
        ("boolean", "int", "bigint", "double", "decimal", "string", "binary", "date", "timestamp"),
        strict=True,
    )
)
_PLACE = re.compile(r"\{(\w)\}")
_TEXT = """
    boolean: {i} < {i}; {i} = {l}; {d} >= {d}; {s} = {s}; {s} <=> {s}; {m} > 1; {t} < {t}; {u} <= {u}; {x} = {x}
    boolean: {b} AND {b}; {b} OR {b}; NOT {b}; {i} IS NULL; {s} IS NOT NULL; {s} LIKE 'a%'; {i} IN (0, 1, 2); {l} BETWEEN 0 AND 5
    boolean: 10 / {i} > 1; isnan({d}); {d} = {i}; CAST({s} AS int) > 0; {i} <> 0 AND 10 / {i} > 1
    int: {i} + 1; {i} + {i}; {i} * 2; {i} % {i}; -({i}); length({s}); year({t}); abs({i}); pmod({i}, 2)
    int: CAST({d} AS int); CAST({l} AS int); CAST({s} AS int); CAST({b} AS int)
    int: CASE WHEN {b} THEN {i} ELSE 0 END; coalesce({i}, 0); if({b}, {i}, 1); nullif({i}, 1)
    bigint: {l} + {i}; {l} * {l}; {i} div {i}; CAST({i} AS bigint); CAST({d} AS bigint); coalesce({l}, 0); {l} % 3; {l} - 1
    double: {i} / {i}; {l} / {i}; {d} + {d}; {d} * 2; {d} / {d}; -({d}); nanvl({d}, 1)
    double: CAST({s} AS double); coalesce({d}, 0.0D); CAST({l} AS double)
    decimal: CAST({i} AS decimal(10,2)); CAST({d} AS decimal(10,2)); CAST({m} AS decimal(6,1)); CAST({s} AS decimal(5,1))
    string: upper({s}); concat({s}, {s}); {s} || '-'; substring({s}, 1, 1); coalesce({s}, ''); if({b}, {s}, 'z')
    string: CAST({i} AS string); CAST({t} AS string)
    binary: CAST({s} AS binary)
    date: date_add({t}, 1); CAST({u} AS date); trunc({t}, 'MM'); CAST({s} AS date)
    timestamp: date_trunc('day', {u}); CAST({t} AS timestamp); {u} + interval 1 day
"""


def _templates() -> dict[str, list[str]]:
    """The templates of _TEXT by the type of their result."""
    found: dict[str, list[str]] = {}
    for line in _TEXT.strip().splitlines():
        kind, _, texts = line.partition(":")
        found.setdefault(kind.strip(), []).extend(text.strip() for text in texts.split(";"))
    return found


_TEMPLATES = _templates()
_NUMBERS = ("int", "bigint", "double", "decimal")
_WIDEST_SUM = 28


@dataclass(frozen=True)
class View:
    select: str
    key: tuple[str, ...]
    shape: str
    types: tuple[SqlType, ...] = ()  # of its columns, if the writer knows them
    shapes: frozenset[str] = frozenset()  # all that is somewhere inside


class Writer:
    """Writes expressions over the columns of one table."""

    def __init__(self, dice: Random, table: Table) -> None:
        self.dice, self.table = dice, table

    def one_of(self, choices: list[str]) -> str:
        return self.dice.choice(choices)

    def chance(self, percent: int) -> bool:
        return self.dice.randrange(100) < percent

    def expression(self, kind: str, depth: int) -> str:
        columns = self.table.columns(kind)
        if depth == 0:
            return self.one_of(columns if columns and self.chance(85) else literals(kind))
        if columns and self.chance(50):
            return self.one_of(columns)
        template = self.one_of(self._fitting(kind))
        return (
            "("
            + _PLACE.sub(lambda found: self.expression(_LETTERS[found[1]], depth - 1), template)
            + ")"
        )

    def _fitting(self, kind: str) -> list[str]:
        """Templates that are filled with columns, if there are any: few constants make few rows
        alike.
        """
        full = [
            t
            for t in _TEMPLATES[kind]
            if all(self.table.columns(_LETTERS[letter]) for letter in _PLACE.findall(t))
        ]
        return full if full and self.chance(85) else _TEMPLATES[kind]

    def any_expression(self, depth: int = 1) -> str:
        """Mostly a column; sometimes something computed, of any type."""
        if self.chance(65):
            return self.one_of(self.table.value_names)
        return self.expression(self.one_of([k for k in _TEMPLATES if self.table.columns(k)]), depth)

    def condition(self) -> str:
        return self.expression("boolean", 2)

    def where(self) -> str:
        return f" WHERE {self.condition()}" if self.chance(25) else ""

    def number(self, names: tuple[str, ...] = _NUMBERS) -> str:
        """An argument of sum or avg: only decimals of up to 28 digits can be summed."""
        summable = [
            c.name for c in self.table.schema.columns if c.type.name in names and _summable(c.type)
        ]
        if summable and self.chance(75):
            return self.one_of(summable)
        kind = self.one_of([n for n in names if n != "decimal"] or list(names))
        return self.expression(kind, 1) if kind != "decimal" else "CAST(1.5 AS decimal(10,2))"

    def call(self) -> str:
        make = self.one_of(
            ["count(*)", "count", "sum", "sum", "avg", "count_if", *["distinct", "min", "max"] * 3]
        )
        text = self._call(make)
        return (
            f"{text} FILTER (WHERE {self.condition()})"
            if make != "count_if" and self.chance(15)
            else text
        )

    def _call(self, make: str) -> str:
        if make == "count(*)":
            return make
        if make == "distinct":
            second = f", {self.any_expression()}" if self.chance(30) else ""
            return f"count(DISTINCT {self.any_expression()}{second})"
        if make == "count_if":
            return f"count_if({self.condition()})"
        return f"{make}({self.number() if make in ('sum', 'avg') else self.any_expression()})"

    def post(self) -> str:
        """What a grouped view shows: mostly a call, sometimes an expression over calls."""
        if self.chance(75):
            return self.call()
        whole = self.number(("int", "bigint"))
        choices = [
            f"sum({whole}) / count(*) + 1",
            f"coalesce(sum({whole}), 0)",
            f"{self.call()} IS NULL",
            "10 / (count(*) - 2)",
        ]
        return self.one_of(
            [
                *choices,
                f"sum({whole}) * 2",
                f"max({whole}) - min({whole})",
                "if(count(*) > 1, 'many', 'one')",
            ]
        )

    def having(self) -> str:
        choices = [
            "count(*) > 1",
            f"count(DISTINCT {self.any_expression()}) >= 2",
            f"min({self.any_expression()}) IS NOT NULL",
        ]
        choices += [
            f"sum({self.number(('int', 'bigint'))}) > 0",
            "10 / (count(*) - 1) > 2",
            f"{self._call('max')} IS NULL OR count(*) < 3",
        ]
        return f" HAVING {self.one_of(choices)}" if self.chance(20) else ""


def _summable(kind: SqlType) -> bool:
    return kind.name != "decimal" or kind.precision <= _WIDEST_SUM


def random_view(dice: Random, table: Table) -> View:
    shape = dice.choice(
        [*["grouped"] * 7, "rows", "keyed", "bag", "index", "distinct", "global", "global"]
    )
    return _SHAPES[shape](Writer(dice, table))


def _rows(w: Writer) -> View:
    return View(f"SELECT * FROM base{w.where()}", (), "rows")


def _keyed(w: Writer) -> View:
    items = [
        *w.table.schema.key,
        *(f"{w.any_expression(2)} AS e{i}" for i in range(w.dice.randint(0, 2))),
    ]
    w.dice.shuffle(items)
    return View(f"SELECT {', '.join(items)} FROM base{w.where()}", (), "keyed")


def _bag(w: Writer) -> View:
    items = [f"{w.any_expression()} AS e{i}" for i in range(w.dice.randint(1, 2))]
    return View(f"SELECT {', '.join(items)} FROM base{w.where()}", _some_key(w, ["e0"], 20), "bag")


def _index(w: Writer) -> View:
    if w.chance(50):
        return View(f"SELECT * FROM base{w.where()}", (w.one_of(w.table.value_names),), "index")
    items = [f"{w.any_expression()} AS e0", *w.table.schema.key]
    return View(f"SELECT {', '.join(items)} FROM base{w.where()}", ("e0",), "index")


def _distinct(w: Writer) -> View:
    items = [f"{w.any_expression()} AS e{i}" for i in range(w.dice.randint(1, 2))]
    return View(
        f"SELECT DISTINCT {', '.join(items)} FROM base{w.where()}",
        _some_key(w, [f"e{len(items) - 1}"], 20),
        "distinct",
    )


def _grouped(w: Writer) -> View:
    groups = [
        BUCKET if w.chance(50) else w.any_expression() for _ in range(w.dice.choice([1, 1, 1, 2]))
    ]
    shown = [f"{g} AS g{i}" for i, g in enumerate(groups)]
    calls = [f"{w.post()} AS a{i}" for i in range(w.dice.randint(1, 3))]
    # as it is, by alias, by number
    written = [w.one_of([g, f"g{i}", str(i + 1)]) for i, g in enumerate(groups)]
    if w.chance(10):
        shown, written = shown[1:], groups  # without its group columns the view is a bag
    key = _some_key(w, [c.split(" AS ")[-1] for c in (shown + calls)[-1:]], 15)
    return View(
        f"SELECT {', '.join(shown + calls)} FROM base{w.where()} GROUP BY"
        f" {', '.join(written)}{w.having()}",
        key,
        "grouped",
    )


def _global(w: Writer) -> View:
    calls = [f"{w.post()} AS a{i}" for i in range(w.dice.randint(1, 3))]
    return View(f"SELECT {', '.join(calls)} FROM base{w.where()}{w.having()}", (), "global")


_SHAPES = {
    "rows": _rows,
    "keyed": _keyed,
    "bag": _bag,
    "index": _index,
    "distinct": _distinct,
    "grouped": _grouped,
    "global": _global,
}


def _some_key(w: Writer, names: list[str], percent: int) -> tuple[str, ...]:
    return tuple(names) if w.chance(percent) else ()
