"""Statements by key beside `get` and `put` of the same keys: SELECT of a row and of a range, UPDATE
and DELETE, on the table and on views.

A statement is parsed, planned and run; planning is shown apart, because it does not depend on what
is read. A SELECT of a row is planned once for all values of its parameters, so it may take less
time than its plan; with the key in its text, it is planned every time. Statements and reads take
turns, so that a slow second of the machine is one for both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from belvedere.bench.results import KeyedStatement, Results
from belvedere.bench.scenarios.database import Database, fresh, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import members
from belvedere.readers.keyed import keyed_of
from belvedere.sql import parameters, query
from belvedere.sql.dialect import parse

_RANGE = 100  # rows
_VIEWS = "V_all"


@dataclass(frozen=True, slots=True)
class _Measure:
    """A statement, and what it is held against; `beside` does the same for the same key by other
    means.
    """

    relation: str
    name: str
    statement: str
    params: Callable[[int], list[Any]]  # by the number of a key
    beside: Callable[[int], Any]
    after: Callable[[int], Any] = lambda _: None  # puts back what the statement changed
    inline: bool = False  # the value of the parameter is written into the text

    def call(self, number: int) -> tuple[str, list[Any]]:
        """The text and its parameters."""
        params = self.params(number)
        if not self.inline:
            return self.statement, params
        return self.statement.replace("?", repr(params[0])), []


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    log = settings.log()
    with fresh(settings.work / "keyed", members(_VIEWS)) as database:
        database.write(log, settings.call)
        database.catch_up(settings.ops)
        correct = database.correct([log])
        found = [_measured(database, m, settings, correct) for m in _measures(database)]
        return Results(keyed=tuple(found))


def _measures(database: Database) -> Iterator[_Measure]:
    yield from _selects("r", database.db.table("r"))
    yield from _selects("V1", database.db.view("V1"))
    yield _select_prefix(database.db.view("V4"))
    yield from _changes(database.db.table("r"))


def _selects(name: str, relation: Any) -> Iterator[_Measure]:
    """Of a row beside a `get`, of a range beside a `get` of each row, and of the first rows."""
    keys = sorted(row["key"] for row in relation.scan())
    width = min(_RANGE, len(keys))

    def some(number: int) -> list[Any]:
        start = number % (len(keys) - width + 1)
        return keys[start : start + width]

    def get_first(number: int) -> Any:
        return [relation.get(some(number)[0])]

    def get_each(number: int) -> Any:
        return [relation.get(key) for key in some(number)]

    def ends(number: int) -> list[Any]:
        return [some(number)[0], some(number)[-1]]

    one, between = (
        f"SELECT * FROM {name} WHERE key = ?",
        f"SELECT * FROM {name} WHERE key BETWEEN ? AND ?",
    )
    yield _Measure(name, "SELECT of a row", one, lambda n: some(n)[:1], get_first)
    inline = "SELECT of a row, key in the text"
    yield _Measure(name, inline, one, lambda n: some(n)[:1], get_first, inline=True)
    yield _Measure(name, f"SELECT of {width} rows", between, ends, get_each)


def _select_prefix(view: Any) -> _Measure:
    groups = sorted({row["grp"] for row in view.scan()})

    def group(number: int) -> list[Any]:
        return [groups[number % len(groups)]]

    statement = "SELECT * FROM V4 WHERE grp = ?"
    return _Measure(
        "V4", "SELECT of a prefix", statement, group, lambda n: list(view.scan(prefix=group(n)))
    )


def _changes(table: Any) -> Iterator[_Measure]:
    """Beside a `put` and a `delete`, which are durable too."""
    rows = list(table.scan())

    def key(number: int) -> list[Any]:
        return [rows[number % len(rows)]["key"]]

    def put(number: int) -> Any:
        return table.put(rows[number % len(rows)])

    update, delete = "UPDATE r SET val = val WHERE key = ?", "DELETE FROM r WHERE key = ?"
    yield _Measure("r", "UPDATE of a row", update, key, put)
    yield _Measure("r", "DELETE of a row", delete, key, lambda n: table.delete(key(n)[0]), put)


def _measured(
    database: Database, measure: _Measure, settings: Settings, correct: bool
) -> KeyedStatement:
    drawn = np.random.default_rng(settings.seed).integers(0, 1 << 30, settings.puts)
    numbers = [int(number) for number in drawn]
    execute = _executed(database, measure)
    right = correct and _agree(measure, execute, numbers[0])
    times: list[tuple[float, float, float]] = []
    for number in numbers:
        statement = _seconds(execute, number)
        measure.after(number)
        plan = _seconds(lambda n: _planned(database, *measure.call(n)), number)
        beside = _seconds(measure.beside, number)
        measure.after(number)
        times.append((statement, plan, beside))
    p50, planning, other = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    return KeyedStatement(measure.relation, measure.name, len(numbers), p50, planning, other, right)


def _executed(database: Database, measure: _Measure) -> Callable[[int], Any]:
    return lambda number: database.db.sql(*measure.call(number)).to_arrow()


def _agree(measure: _Measure, execute: Callable[[int], Any], number: int) -> bool:
    """Whether a SELECT has the rows that are read otherwise; of others, whether one row changed."""
    answer = execute(number).to_pylist()
    measure.after(number)
    if not measure.statement.startswith("SELECT"):
        return "1 row(s)" in str(answer)
    return sorted(map(repr, answer)) == sorted(map(repr, measure.beside(number)))


def _planned(database: Database, text: str, params: list[Any]) -> Any:
    """What is done with a statement before anything is read."""
    statement = parse(text)
    parameters.bind(statement, params)
    if not text.startswith("SELECT"):
        return statement
    state = database.db.state()
    names = [name.lower() for name in query.relations(statement)]
    found = {name: state.relation(name) for name in names}
    keyed = {name: keyed_of(each) for name, each in found.items()}
    direct = query.direct(statement, keyed)
    if direct is not None:
        return direct
    query.translate(statement, {name: each.schema for name, each in found.items()})
    return query.ranges_in(statement, keyed)


def _seconds(work: Callable[[int], Any], number: int) -> float:
    began = time.perf_counter()
    work(number)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(run)
