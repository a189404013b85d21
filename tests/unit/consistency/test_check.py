"""belvedere check: what it says, its exit codes, and histories that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import belvedere
from belvedere.cli.app import app
from belvedere.consistency import judge, read_history
from belvedere.consistency.history import history_of
from belvedere.errors import HistoryError, SqlError

TABLE = {"table": "r", "key": ["k"], "columns": {"k": "INT", "y": "BIGINT"}}
VIEW = {"view": "d", "select": "SELECT sum(y) AS s FROM r"}


def history(path: Path, *seen: int, amounts: tuple[int, ...] = (1, 2, 4)) -> Path:
    puts = [{"op": n, "table": "r", "row": {"k": n, "y": y}} for n, y in enumerate(amounts)]
    states = [{"whole": "d", "rows": [{"s": s}]} for s in seen]
    lines: list[dict[str, Any]] = [TABLE, VIEW, *puts, *states]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("seen", "level", "code"),
    [((1, 7), "strong", 0), ((1, 7), "complete", 1), ((3, 1), "strong", 1), ((3, 1), "weak", 0)],
)
def test_the_exit_code_says_whether_the_level_holds(
    tmp_path: Path, seen: tuple[int, ...], level: str, code: int
) -> None:
    path = history(tmp_path / "h", *seen)
    found = CliRunner().invoke(app, ["check", str(path), "--level", level])
    assert found.exit_code == code
    told = json.loads(
        CliRunner().invoke(app, ["check", str(path), "--level", level, "--json"]).stdout
    )
    assert told["ok"] == (code == 0)
    assert ("is violated" in found.output) == (code == 1 and level == "strong")


def test_what_cannot_be_decided_or_read_ends_with_2(tmp_path: Path) -> None:
    path = history(tmp_path / "h", 7)
    assert CliRunner().invoke(app, ["check", str(path), "--limit", "2"]).exit_code == 2
    assert CliRunner().invoke(app, ["check", str(path), "--level", "best"]).exit_code == 2
    assert CliRunner().invoke(app, ["check", str(tmp_path / "none")]).exit_code == 2
    (found,) = judge(read_history(path), limit=2)
    assert found.holds("strong") is None
    assert "source states" in found.unknown


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("upper(s)", "SS"),  # of ß; DuckDB leaves it
        ("CAST(y AS INT)", 2),  # of 2.7; DuckDB rounds
        ("CASE WHEN s LIKE '_' THEN 1 END", 2),
    ],
)
def test_nobody_is_convicted_for_what_duckdb_may_see_in_another_way(
    expression: str, shown: Any
) -> None:
    table = {"table": "r", "key": ["k"], "columns": {"k": "INT", "s": "VARCHAR", "y": "DOUBLE"}}
    put = {"op": 0, "table": "r", "row": {"k": 1, "s": "ß", "y": 2.7}}
    inner = {"view": "w", "select": f"SELECT k, {expression} AS e FROM r"}
    outer = {"view": "d", "select": "SELECT e FROM w"}
    seen = [{"whole": "w", "rows": [{"k": 1, "e": shown}]}, {"whole": "d", "rows": [{"e": shown}]}]
    for verdict in judge(history_of([table, put, inner, outer, *seen])):
        assert verdict.holds("strong") is None
        assert verdict.unknown.startswith("weak: Spark and DuckDB may not agree on ")
    right = {"whole": "w", "rows": [{"k": 1, "s": "ß"}]}
    (found,) = judge(history_of([table, put, {**inner, "select": "SELECT k, s FROM r"}, right]))
    assert found.holds("strong")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 3: not JSON"),
        ("[]", "line 3: a line is a JSON object"),
        ("{}", "line 3: a line has one of"),
        ('{"op": 1, "table": "t", "row": null}', "line 3: table t has not been declared"),
        ('{"op": "1", "table": "r", "row": null}', "line 3: 'op' is '1'"),
        ('{"op": 1, "table": "r", "row": {"k": 1, "z": 1}}', "line 3: table r has no column z"),
        ('{"whole": "e", "rows": []}', "line 3: view e has not been declared"),
        ('{"whole": "d"}', "line 3: 'rows' is missing"),
        ('{"view": "d", "select": "x", "decode": "magic"}', "line 3: decode 'magic'"),
        ('{"history": 9}', "line 3: this is format 9"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "h"
    path.write_text(f"{json.dumps(TABLE)}\n{json.dumps(VIEW)}\n{line}\n")
    with pytest.raises(HistoryError, match=said.replace("[", r"\[")):
        read_history(path)


@pytest.mark.parametrize(
    ("selects", "said"),
    [
        (("SELECT s FROM e", "SELECT s FROM d"), "view d names itself, through e"),
        (("DROP TABLE r",), "the SELECT of view d is none"),
        (("SELECT s FROM r JOIN",), "the SELECT of view d: "),
        (("SELECT content AS s FROM read_text('/etc/hostname')",), "view d: DuckDB cannot do it"),
    ],
)
@pytest.mark.parametrize("decode", [None, "powers"])
def test_views_that_cannot_be_evaluated_are_named(
    tmp_path: Path, selects: tuple[str, ...], said: str, decode: str | None
) -> None:
    views = [
        {"view": name, "select": select, "key": ["s"], "decode": decode}
        for name, select in zip("de", selects, strict=False)
    ]
    seen = {"state": "d", "key": [1], "row": {"s": 1}}
    put = {"op": 0, "table": "r", "row": {"k": 1, "y": 1}}
    path = tmp_path / "h"
    path.write_text("".join(json.dumps(line) + "\n" for line in [TABLE, *views, put, seen]))
    with pytest.raises(HistoryError, match=said):
        judge(read_history(path))
    found = CliRunner().invoke(app, ["check", str(path)])
    assert found.exit_code == 2


def test_half_of_a_transaction_is_no_state() -> None:
    puts = [{"op": n, "tx": 0, "table": "r", "row": {"k": n, "y": 1 << n}} for n in range(2)]
    half = {"whole": "d", "rows": [{"s": 1}]}
    (found,) = judge(history_of([TABLE, VIEW, *puts, half]))
    assert found.missed == "weak"


def test_levels_in_sql_are_a_minimum(tmp_path: Path) -> None:
    with belvedere.open("memory:") as db:
        db.sql("CREATE TABLE r (k INT, y BIGINT, PRIMARY KEY (k))")
        db.sql("CREATE MATERIALIZED VIEW v WITH (consistency = 'weak') AS SELECT k FROM r")
        assert "weak is asked, strong is given" in str(db.sql("EXPLAIN v"))
        assert "consistency = 'weak'" in str(db.sql("SHOW CREATE TABLE v"))
        (info,) = db.status().views
        assert (info.consistency, info.given) == ("weak", "strong")
        text = "CREATE MATERIALIZED VIEW w WITH (consistency = 'best') AS SELECT k FROM r"
        with pytest.raises(SqlError, match="'convergent', 'weak'"):
            db.sql(text)
