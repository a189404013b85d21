"""Nothing that is written is ignored: an argument more in a parsed tree is refused, or makes a
difference.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from sqlglot import exp

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.errors import BelvedereError
from belvedere.sql import planner
from belvedere.sql.dialect import parse
from belvedere.sql.planner import plan_view
from belvedere.sql.query import translate
from belvedere.types import Schema
from tests.unit.sql.test_plans import QUERIES, TABLES, VIEWS

# Arguments that change nothing, each with its reason.
_MEANINGLESS = {
    ("Identifier", "quoted"): "a name is a name",
    ("Count", "big_int"): "the parser sets it for every count, whose result is a bigint",
    ("Window", "over"): "the word OVER",
    ("Div", "typed"): "the parser's note on its own dialect",
    ("Div", "safe"): "the parser's note on its own dialect",
    ("DPipe", "safe"): "the parser's note on its own dialect",
    ("Concat", "safe"): "the parser's note on its own dialect",
    ("Concat", "coalesce"): "the parser's note on its own dialect",
    ("ConcatWs", "safe"): "the parser's note on its own dialect",
    ("ConcatWs", "coalesce"): "the parser's note on its own dialect",
    ("ConcatWs", "flatten"): "the parser's note on its own dialect",
    ("Coalesce", "is_nvl"): "which of its names the function was called by",
    ("Coalesce", "is_null"): "which of its names the function was called by",
    ("Greatest", "ignore_nulls"): "the parser's note on its own dialect",
    ("Least", "ignore_nulls"): "the parser's note on its own dialect",
    ("Chr", "charset"): "the parser's note on its own dialect",
    ("DataType", "nested"): "the parser's note on the types in < >",
    ("Select", "hint"): "in a query: how Spark computes, not what",
    ("Ordered", "desc"): "False is ascending, as without it",
    ("Join", "kind"): "CROSS JOIN with ON is a JOIN, for Spark too",
    ("TableAlias", "columns"): "the names that the columns have already",
    ("Star", "except_"): "in a query: a column that is not there is refused",
}
# nothing else can stand there
_NAMES = {(kind, name) for kind in (exp.Column, exp.Table) for name in ("table", "db", "catalog")}
_WORDS = ("side", "kind", "method")  # of a join
_VALUES = (
    lambda: True,
    lambda: "LEFT",
    lambda: exp.to_identifier("id"),
    lambda: exp.Literal.number(3),
    lambda: exp.Literal.string("x"),
    lambda: exp.column("id"),
    lambda: [exp.column("id")],
    lambda: [exp.Literal.number(1)],
    lambda: exp.Tuple(expressions=[exp.column("id")]),
    lambda: exp.Anonymous(this="nothing", expressions=[]),
    lambda: exp.EQ(this=exp.column("id"), expression=exp.Literal.number(1)),
)


def planned(tree: exp.Expr, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(planner, "parse", lambda _: tree)
    return repr(plan_view("", [], TABLES, VIEWS))


def translated(tree: exp.Expr, _: pytest.MonkeyPatch) -> str:
    schemas = {t.name: t.schema for t in TABLES} | {
        v.name: plan_view(v.select, [], TABLES, VIEWS).schema for v in VIEWS
    }
    found = translate(tree, {name: Schema(schema.columns) for name, schema in schemas.items()})
    return f"{found.sql} {found.schema}"


def with_one_more(dice: random.Random, tree: exp.Expr) -> tuple[exp.Expr, exp.Expr, str]:
    """A copy of the tree in which one argument more is set that the grammar allows, and where."""
    made = tree.copy()
    node = dice.choice(
        [n for n in made.walk() if set(n.arg_types) - {k for k, v in n.args.items() if v}]
    )
    name = dice.choice(sorted(set(node.arg_types) - {k for k, v in node.args.items() if v}))
    value = exp.to_identifier("id") if (type(node), name) in _NAMES else dice.choice(_VALUES)()
    node.set(
        name,
        (
            dice.choice(("LEFT", "CROSS", "ASOF"))
            if isinstance(node, exp.Join) and name in _WORDS
            else value
        ),
    )
    return made, node, name


@pytest.mark.parametrize("meaning", [planned, translated])
@pytest.mark.parametrize("part", range(4))
def test_one_argument_more_is_refused_or_makes_a_difference(
    meaning: Any, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(part)
    known: dict[str, tuple[exp.Expr, str]] = {}
    for query in QUERIES[part::4]:
        tree = parse(query)
        try:
            known[query] = tree, meaning(tree.copy(), monkeypatch)
        except BelvedereError:
            continue  # a view need not be answered ad hoc, and the other way round
    refused, ignored = 0, []
    for _ in range(400):
        query = dice.choice(list(known))
        tree, before = known[query]
        made, node, name = with_one_more(dice, tree)
        try:
            after = meaning(made, monkeypatch)
        except BelvedereError:
            refused += 1
            continue
        except (AttributeError, TypeError, ValueError):
            continue  # the argument is looked at, and is none that the parser makes
        if after == before and (type(node).__name__, name) not in _MEANINGLESS:
            ignored.append(f"{type(node).__name__}.{name} = {node.args[name]!r} in {query}")
    assert not ignored
    assert refused > 200


@pytest.fixture
def db(tmp_path: Any) -> Any:
    with belvedere.open(tmp_path / "db") as opened:
        opened._runner = LocalRunner(opened.store)
        opened.sql("CREATE TABLE r (id INT PRIMARY KEY, i INT)")
        opened.sql("CREATE TABLE s (k INT PRIMARY KEY, x INT)")
        opened.sql("INSERT INTO r VALUES (1, 10), (2, 20), (3, 30)")
        opened.sql("INSERT INTO s VALUES (10, 1), (10000, 2)")
        yield opened


@pytest.mark.parametrize(
    ("select", "rows"),
    [
        ("SELECT id, i FROM ((SELECT id, i FROM r) AS a JOIN s ON a.i = s.k)", [(1, 10)]),
        (
            "SELECT id, i FROM ((SELECT id, i FROM r) AS a LEFT ANTI JOIN s ON a.i = s.k)",
            [(2, 20), (3, 30)],
        ),
        (
            (
                "SELECT a.id, r.i FROM r a JOIN ((SELECT id, i FROM r) AS r JOIN s ON r.i = s.k) ON"
                " a.id = r.id"
            ),
            [(1, 10)],
        ),
        (
            (
                "SELECT id FROM r WHERE id IN (SELECT a.id FROM ((SELECT id, i FROM r) AS a JOIN s"
                " ON a.i = s.k))"
            ),
            [(1,)],
        ),
        (
            (
                "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM ((SELECT id, i FROM r) AS a JOIN s ON"
                " a.i = s.k) WHERE a.id = r.id)"
            ),
            [(1,)],
        ),
        (
            "SELECT x FROM s UNION SELECT id FROM ((SELECT id, i FROM r) AS a JOIN s ON a.i = s.k)",
            [(1,), (2,)],
        ),
        ("SELECT id FROM (r)", [(1,), (2,), (3,)]),
        ("SELECT r.id FROM ((r))", [(1,), (2,), (3,)]),
        (
            "SELECT i, count(*) AS n FROM (SELECT id AS all, 1 AS i FROM r) GROUP BY all, i",
            [(1, 1), (1, 1), (1, 1)],
        ),
        (
            "SELECT count(*) AS n FROM (SELECT id AS all, 1 AS i FROM r) GROUP BY all",
            [(1,), (1,), (1,)],
        ),
        ("SELECT id FROM r ORDER BY id LIMIT 0", []),
        ("SELECT a.id, b.x FROM r a NATURAL JOIN (SELECT k AS i, x FROM s) b", [(1, 1)]),
        ("WITH d AS (SELECT x FROM s) SELECT id FROM r", [(1,), (2,), (3,)]),
    ],
)
def test_a_view_and_a_query_answer_alike(
    db: belvedere.Database, select: str, rows: list[tuple[Any, ...]]
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select}")
    db.catch_up()
    for table in (db.view("v").to_arrow(), db.sql(select).to_arrow()):
        assert sorted(zip(*(c.to_pylist() for c in table.columns), strict=True)) == rows


def test_a_definition_that_nothing_uses_does_not_keep_its_table(db: belvedere.Database) -> None:
    db.sql(
        "CREATE MATERIALIZED VIEW v AS WITH d AS (SELECT x FROM s) SELECT id FROM r WHERE i > 10"
    )
    db.sql("DROP TABLE s")
    assert " s" not in db.state().view("v").planned.checked
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v")
    db.catch_up()
    assert db.view("w").to_arrow().to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    "select",
    [
        "SELECT id\nFRM r",
        "SELECT id\nFROM r WHER id = 1",
        "SELECT id, count(*) AS n\nFROM r GROUP id",
    ],
)
@pytest.mark.parametrize(
    "before",
    ["CREATE MATERIALIZED VIEW v AS ", "EXPLAIN CREATE MATERIALIZED VIEW v AS ", "EXPLAIN ", ""],
)
def test_a_typo_in_a_select_is_shown_where_it_stands(
    db: belvedere.Database, before: str, select: str
) -> None:
    word = "r" if "FRM" in select else "id"
    column = select.split("\n")[1].rindex(f" {word}" if word == "r" else "id") + (
        2 if word == "r" else 1
    )
    column = select.split("\n")[1].index("id") + 1 if "WHER" in select else column
    with pytest.raises(
        BelvedereError, match=rf"{word} is not expected here \(line 2, column {column}\)"
    ):
        db.sql(before + select).to_arrow()


@pytest.mark.parametrize(
    "before",
    [
        "EXPLAIN ",
        "EXPLAIN COST ",
        "EXPLAIN CREATE MATERIALIZED VIEW v AS ",
        "CREATE MATERIALIZED VIEW v AS ",
    ],
)
def test_a_place_is_counted_in_the_whole_statement(db: belvedere.Database, before: str) -> None:
    statement = f"{before}SELECT id FRM r"
    with pytest.raises(BelvedereError, match=rf"\(line 1, column {len(statement)}\)"):
        db.sql(statement)


def test_a_wrong_literal_is_named_with_its_column(db: belvedere.Database) -> None:
    with pytest.raises(
        BelvedereError,
        match=r"^'abc' cannot be stored in column i, which is INT: nothing was inserted$",
    ):
        db.sql("INSERT INTO r VALUES (4, 1), (5, 'abc')")
    assert db.sql("SELECT count(*) AS n FROM r").to_pylist() == [{"n": 3}]
