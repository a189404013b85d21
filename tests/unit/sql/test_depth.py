"""Long and deep statements: answered, or refused with a message; never a RecursionError, and never
the end of the process.
"""

from __future__ import annotations

import gc
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.errors import BelvedereError
from belvedere.sql.planner import plan_view
from tests.golden.tables import TABLES

# Twice what Python's recursion would allow; 20,000 were tried, which takes a minute.
TERMS = int(os.environ.get("BELVEDERE_TERMS") or 2_000)

NESTINGS: dict[str, Callable[[int], str]] = {
    "OR": lambda n: "SELECT id FROM t WHERE " + " OR ".join(["v = 1"] * n),
    "AND": lambda n: "SELECT id FROM t WHERE " + " AND ".join(["v <> 7"] * n),
    "OR that raises": lambda n: "SELECT id FROM t WHERE " + " OR ".join(["10 / id = 5"] * n),
    "AND in OR": lambda n: "SELECT id FROM t WHERE " + " OR v = 2 AND ".join(["v = 1"] * n),
    "+": lambda n: f"SELECT id, {' + '.join(['v'] * n)} AS w FROM t",
    "||": lambda n: f"SELECT id, {' || '.join(['s'] * n)} AS w FROM t",
    "parentheses": lambda n: f"SELECT id, {'(' * n}v{')' * n} AS w FROM t",
    "CASE": lambda n: f"SELECT id, {'CASE WHEN v = 1 THEN 1 ELSE ' * n}v{' END' * n} AS w FROM t",
    "CASE in WHEN": lambda n: (
        f"SELECT id, {'CASE WHEN ' * n}v = 1{' THEN true ELSE false END' * n} AS w FROM t"
    ),
    "calls": lambda n: f"SELECT id, {'abs(' * n}v{')' * n} AS w FROM t",
    "concat": lambda n: f"SELECT id, {'concat(s, ' * n}s{')' * n} AS w FROM t",
    "NOT": lambda n: f"SELECT id FROM t WHERE {'NOT ' * n}v = 1",
    "minus": lambda n: f"SELECT id, {'- ' * n}v AS w FROM t",
    "casts": lambda n: f"SELECT id, v{'::int' * n} AS w FROM t",
    "subqueries": lambda n: f"SELECT id FROM {'(SELECT id FROM ' * n}t{')' * n}",
    "relations in parentheses": lambda n: f"SELECT id FROM {'(' * n}t{')' * n}",
    "UNION ALL": lambda n: " UNION ALL ".join(["SELECT id FROM t"] * n),
    "IN": lambda n: f"SELECT id FROM t WHERE {'id IN (SELECT id FROM t WHERE ' * n}v = 1{')' * n}",
    "WITH": lambda n: f"{'WITH a AS (' * n}SELECT id FROM t{') SELECT id FROM a' * n}",
    "brackets": lambda n: f"SELECT id, s{'[0]' * n} AS w FROM t",
    "types": lambda n: f"SELECT id, CAST(s AS {'array<' * n}int{'>' * n}) AS w FROM t",
    "dots": lambda n: f"SELECT id, {'t.' * n}v AS w FROM t",
}


@pytest.fixture
def db(tmp_path: Any) -> Iterator[belvedere.Database]:
    with belvedere.open(tmp_path / "db") as opened:
        opened._runner = LocalRunner(opened.store)
        opened.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT, s STRING)")
        opened.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 5, 'b')")
        yield opened


def refusal(run: Callable[[str], object], text: str) -> str:
    """What is said about a statement that is not obeyed; any other error fails the test."""
    try:
        run(text)
    except BelvedereError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", NESTINGS)
def test_any_depth_is_answered_or_refused(db: belvedere.Database, name: str) -> None:
    dice = random.Random(name)
    balanced = "OR" in name or "AND" in name  # these are answered, which takes its time
    depths = [40, dice.randint(41, 1_000)]
    for depth in depths if balanced else [*depths, dice.randint(1_000, 50_000)]:
        text = NESTINGS[name](depth)
        for run in (lambda t: db.sql(t).to_arrow(), lambda t: db.sql(f"EXPLAIN {t}")):
            message = refusal(run, text)
            assert not message or depth > 40 or name in ("brackets", "types", "dots", "IN"), message
            assert "depth" not in message  # DuckDB's word for it


@pytest.mark.parametrize(
    "name", ["+", "||", "parentheses", "CASE", "calls", "concat", "NOT", "minus", "casts"]
)
def test_what_is_planned_can_be_maintained(db: belvedere.Database, name: str) -> None:
    select = NESTINGS[name](180)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select}")
    db.catch_up()
    assert sorted(map(repr, db.view("v").to_arrow().to_pylist())) == sorted(
        map(repr, db.sql(select).to_pylist())
    )


@pytest.mark.slow
@pytest.mark.parametrize("word", ["OR", "AND"])
def test_a_condition_of_many_terms_works_everywhere(db: belvedere.Database, word: str) -> None:
    tests = f" {word} ".join(f"v {'=' if word == 'OR' else '<>'} {i + 5}" for i in range(TERMS))
    found = [{"id": 2 if word == "OR" else 1}]
    db.sql(f"CREATE MATERIALIZED VIEW w AS SELECT id FROM t WHERE {tests}")
    db.catch_up()
    assert db.view("w").to_arrow().to_pylist() == found
    assert db.sql(f"SELECT id FROM t WHERE {tests}").to_pylist() == found
    assert str(db.sql(f"UPDATE t SET s = 'z' WHERE {tests}")) == "1 row(s) updated"
    assert str(db.sql(f"DELETE FROM t WHERE {tests}")) == "1 row(s) deleted"
    db.catch_up()
    assert db.view("w").to_arrow().to_pylist() == []


def test_a_long_condition_stops_where_it_is_decided(db: belvedere.Database) -> None:
    tests = " OR ".join(["id = 2", *(f"10 / (id - 2) = {i}" for i in range(40))])
    assert db.sql(f"SELECT id FROM t WHERE {tests}").to_pylist() == [{"id": 2}]
    tests = " AND ".join(["id <> 2", *(f"10 / (id - 2) <> {i}" for i in range(40))])
    assert db.sql(f"SELECT id FROM t WHERE {tests}").to_pylist() == [{"id": 1}]
    tests = " OR ".join(["v = NULL", *(f"10 / id = {i}" for i in range(20, 40))])
    assert db.sql(f"SELECT ({tests}) IS NULL AS n FROM t WHERE id = 1").to_pylist() == [{"n": True}]


def calls_of_planning(select: str) -> int:
    """How many functions are called meanwhile: what it costs, whatever the clock says."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    gc.collect()
    gc.disable()  # else what other tests have left is collected, and counted, here
    sys.setprofile(count)
    try:
        plan_view(select, [], [t.info for t in TABLES])
    finally:
        sys.setprofile(before)
        gc.enable()
    return calls


def test_a_sum_of_many_terms_is_not_lowered_again_at_every_level() -> None:
    def calls(terms: int) -> int:
        return calls_of_planning(f"SELECT id, {' + '.join(['amount'] * terms)} AS w FROM orders")

    calls(2)  # which fills what is computed once
    assert calls(100) < 2.5 * calls(50)


def test_planning_twice_as_many_full_joins_is_less_than_four_times_the_work() -> None:
    def calls(count: int) -> int:
        joins = "".join(f" FULL JOIN orders o{i} USING (id)" for i in range(count))
        return calls_of_planning(f"SELECT id FROM orders o{joins}")

    calls(2)
    assert calls(80) < 4 * calls(40)  # 3.2 alone, 3.8 behind tests that have filled caches


def test_a_refusal_names_a_function_as_the_user_wrote_it(db: belvedere.Database) -> None:
    """Functions that Spark has and views do not: no name of the parser's own is in the message."""
    from pyspark.sql import functions
    from sqlglot import exp

    internal = {kind.sql_name().lower() for kind in exp.ALL_FUNCTIONS if "_" in kind.sql_name()}
    names = [
        n
        for n in dir(functions)
        if re.fullmatch(r"[a-z][a-z0-9_]+", n) and callable(getattr(functions, n))
    ]
    seen, wrong = 0, []
    for name in names:
        written = name.title()  # nobody writes it so, and no parser
        for arguments in ("s", "s, s", "s, s, s"):
            try:
                db.sql(f"EXPLAIN SELECT id, {written}({arguments}) AS c FROM t")
            except BelvedereError as error:
                text = str(error)
                if "not supported" not in text:
                    continue  # another number or type of arguments
                seen += 1
                leaked = [i for i in internal - {name} if re.search(rf"\b{i}\b", text.lower())]
                if written.lower() not in text.lower() or leaked:
                    wrong.append(f"{written}({arguments}): {text}")
    assert not wrong
    assert seen > 300
