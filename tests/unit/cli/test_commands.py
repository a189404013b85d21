"""Statements, listings, help, usage errors: everything that needs no Spark."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from belvedere.cli.app import app
from belvedere.cli.prompt import is_complete
from belvedere.cli.tables import plural, size
from belvedere.cli.wrong_rows import wrong_rows
from tests.unit.cli.conftest import Cli

COMMANDS = sorted(c.name or "" for c in app.registered_commands)


def test_every_command_of_the_manual_is_there() -> None:
    expected = (
        "backup bench catch-up changes check compact delete demo explain export get hbase history import"
        " init inspect metrics put rebuild restore run salvage scan sources sql status verify views why"
    )
    assert expected.split() == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(cli: Cli, command: str) -> None:
    result = cli(command, "--help", db=None)
    assert result.exit_code == 0
    assert "Examples" in result.stdout
    assert (
        f"belvedere{' --db shop' if f'--db shop {command}' in result.stdout else ''} {command}"
        in result.stdout
    )


def test_no_command_shows_the_help_and_an_unknown_one_is_a_usage_error(cli: Cli) -> None:
    assert "Keeping views up to date" in cli(db=None).output
    assert cli("maintain", db=None).exit_code == 2
    assert cli("--version", db=None).stdout.startswith("belvedere ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "--yes"],
        ["bench", "--views", "V9"],
        ["bench", "--scenarios", "speed"],
        ["sql", "SELECT 1", "--file", __file__],
        ["get"],
        ["status", "--epochs", "-1"],
    ],
)
def test_wrong_usage_ends_with_2(filled: Cli, arguments: list[str]) -> None:
    assert filled(*arguments).exit_code == 2


def test_sql_answers_as_a_table_or_as_json_lines(filled: Cli) -> None:
    filled(
        "sql",
        "INSERT INTO readings (place, number, total, amount) VALUES ('a', 1, 5, 1.50), ('b', 2, 6,"
        " NULL)",
    )
    table = filled("sql", "SELECT place, amount FROM readings ORDER BY place").stdout
    assert "NULL" in table
    assert "1.50" in table
    assert "2 rows" in table
    rows = filled(
        "sql", "SELECT place, amount FROM readings ORDER BY place", "--json"
    ).stdout.splitlines()
    assert [json.loads(row) for row in rows] == [
        {"place": "a", "amount": "1.50"},
        {"place": "b", "amount": None},
    ]


def test_a_script_answers_statement_by_statement_and_stops_at_the_first_error(
    filled: Cli, tmp_path: Path
) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "SHOW TABLES; -- a comment; with a semicolon\nSELECT 'a;b' AS x; SELEC; SHOW VIEWS;"
    )
    result = filled("sql", "-f", str(script))
    assert result.exit_code == 1
    assert "readings" in result.stdout
    assert "a;b" in result.stdout
    assert "sums" not in result.stdout
    assert "statement 3 of 4" in result.stderr


def test_sql_reads_standard_input_when_that_is_no_terminal(filled: Cli) -> None:
    assert json.loads(filled("sql", "--json", input="SELECT 1 AS one;").stdout) == {"one": 1}
    assert "no statement" in filled("sql", input="").stderr


def test_sql_takes_parameters_by_place_and_by_name(filled: Cli) -> None:
    insert = "INSERT INTO readings (place, number, total, amount) VALUES (?, ?, ?, ?)"
    values = ['it\'s; -- a "b"', "-7", "5", "1.50"]
    assert "1 row(s) put" in filled("sql", insert, *(f"--param={v}" for v in values)).stdout
    chosen = "SELECT place, number, amount FROM readings WHERE number = :n AND place = :p"
    options = ["--param", f"p={values[0]}", "--param", "n=-7", "--json"]
    assert json.loads(filled("sql", chosen, *options).stdout) == {
        "place": values[0],
        "number": -7,
        "amount": "1.50",
    }
    kinds = "SELECT ? AS a, ? AS b, ? IS NULL AS c, ? AS d, ? AS e, ? AS f, ? AS g"
    texts = ["1e3", "true", "NULL", '"7"', "a=b", "2026-01-31", "X'00ff'"]
    assert json.loads(
        filled("sql", kinds, "--json", *(f"--param={text}" for text in texts)).stdout
    ) == {"a": 1000.0, "b": True, "c": True, "d": "7", "e": "a=b", "f": "2026-01-31", "g": "00ff"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["SELECT :a", "--param", "7"], "'7' has no name: write --param name=value"),
        (["SELECT :a", "--param", "a=1", "--param", "a=2"], "'a' is given twice"),
        (["SELECT :a", "--param", "b=1"], "there is no parameter :b: the statement has :a"),
        (["SELECT ?"], "the statement has parameters (?): give their values, as in [value]"),
        (["SELECT ?; SELECT 1", "--param", "7"], "parameters are for one statement"),
        (["SELECT 1", "--param", "7"], "0 parameter(s), and 1 value(s)"),
    ],
)
def test_parameters_that_do_not_fit_are_one_line(
    filled: Cli, arguments: list[str], says: str
) -> None:
    result = filled("sql", *arguments)
    assert result.exit_code == 1
    assert says in " ".join(result.stderr.split())


def test_a_script_may_begin_with_a_byte_order_mark(filled: Cli, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_bytes(b"\xef\xbb\xbfSELECT 'caf\xc3\xa9' AS one")
    assert json.loads(filled("sql", "-f", str(script), "--json").stdout) == {"one": "café"}
    assert json.loads(filled("sql", "--json", input=script.read_bytes()).stdout) == {"one": "café"}


def test_a_script_that_is_not_utf8_is_named_with_its_line(filled: Cli, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_bytes(b"SELECT 1;\nSELECT 'caf\xe9' AS one")
    told = filled("sql", "-f", str(script))
    assert told.exit_code == 1
    assert told.stdout == ""
    assert (
        f"error: {script} is not UTF-8 text, see line 2: convert it to UTF-8 first" in told.stderr
    )
    assert (
        "standard input is not UTF-8 text, see line 2"
        in filled("sql", input=script.read_bytes()).stderr
    )


def test_catching_up_with_no_time_only_looks_whether_there_is_work(
    filled: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object) -> None:
        raise AssertionError("Spark is not needed to look")

    monkeypatch.setattr("belvedere.cli.spark.start", started)
    filled("put", "readings", "place=a", "number=1", "total=1")
    result = filled("catch-up", "--timeout", "0")
    assert result.exit_code == 1
    assert "after 0 s 1 operation(s) are not in the views" in result.stderr
    assert json.loads(filled("status", "--json").stdout)["epoch"] == 0
    filled("init", str(shop.with_name("empty")))
    assert (
        "there was nothing to do"
        in filled("catch-up", "--timeout", "0", db=shop.with_name("empty")).stdout
    )


@pytest.mark.parametrize("arguments", [["catch-up", "--timeout", "inf"], ["run", "--every", "inf"]])
def test_times_that_are_no_times_are_refused_before_spark_starts(
    filled: Cli, arguments: list[str]
) -> None:
    assert "use a number of seconds" in filled(*arguments).stderr


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT\n1 ;  ", True),
        ("SELECT ';", False),
        ("SELECT ';'", False),
        ("SELECT 1; -- done;", True),
        ("SELECT 1 -- not done;", False),
        ("quit", True),
        ("help", True),
        ("", True),
    ],
)
def test_the_prompt_runs_what_ends_with_a_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_views_and_explain(filled: Cli) -> None:
    (view,) = json.loads(filled("views", "--json").stdout)
    assert (view["name"], view["state"], view["tables"], view["key"]) == (
        "sums",
        "requested",
        ["readings"],
        ["place"],
    )
    assert view["columns"] == {"place": "string", "n": "bigint", "amount": "decimal(20,2)"}
    assert "sums" in filled("views").stdout
    assert "Aggregate" in filled("explain", "sums").stdout
    assert "BagSink" in filled("explain", "SELECT place FROM readings").stdout
    assert filled("explain", "SELECT").exit_code == 1


def test_status_and_metrics_before_the_first_epoch(filled: Cli) -> None:
    filled("put", "readings", "place=a", "number=1", "total=1")
    status = json.loads(filled("status", "--json").stdout)
    assert (status["epoch"], status["written"], status["views"][0]["state"]) == (0, 1, "requested")
    assert "no pipeline is running" in filled("status").stdout
    metrics = filled("metrics").stdout
    assert "belvedere_written_operations 1.0" in metrics
    assert 'belvedere_view_live{view="sums"} 0.0' in metrics


def test_a_traceback_is_shown_only_when_asked_for(filled: Cli) -> None:
    assert "Traceback" not in filled("sql", "SELEC").stderr
    for arguments in (("--traceback", "sql", "SELEC"), ("sql", "SELEC", "--traceback")):
        result = filled(*arguments)
        assert "Traceback" in result.stderr
        assert result.stderr.splitlines()[-1].startswith("error: ")


def test_a_defect_is_one_line_too(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("belvedere.cli.status.shown", broken)
    result = filled("status")
    assert result.exit_code == 1
    assert "unexpected KeyError" in result.stderr
    assert "--traceback" in result.stderr


def test_names_may_look_like_the_markup_of_a_terminal(filled: Cli, tmp_path: Path) -> None:
    name, file = "[/red]", str(tmp_path / "[red].csv")
    commands = [
        ("sql", f"CREATE TABLE `{name}` (`[/k]` STRING PRIMARY KEY)"),
        ("sql", f"CREATE MATERIALIZED VIEW `[/v]` AS SELECT `[/k]` FROM `{name}`"),
        ("put", name, "[/k]=[/value]"),
        ("export", name, file),
        ("import", name, file),
        ("get", name, "[/value]"),
        ("scan", name),
        ("sql", f"SELECT * FROM `{name}`"),
        ("views",),
        ("explain", "[/v]"),
        ("status",),
        ("delete", name, "[/value]"),
    ]
    for command in commands:
        done = filled(*command)
        assert done.exit_code == 0, done.output
    drawn = Console(width=80, file=io.StringIO())
    drawn.print(wrong_rows(name, ("found", "expected"), [], 1, 5))


def test_sizes_and_plurals_as_people_say_them() -> None:
    assert [size(n) for n in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 B",
        "1,023 B",
        "1.5 KiB",
        "5.0 MiB",
        "3,072.0 GiB",
    ]
    assert (plural(1, "row"), plural(1200, "row")) == ("1 row", "1,200 rows")


def test_a_store_that_would_end_with_the_command_is_not_made(cli: Cli) -> None:
    result = cli("init", "memory:", db=None)
    assert result.exit_code == 1
    assert "would end with this command" in result.stderr


def test_values_that_are_missing_are_asked_for_as_the_command_line_takes_them(filled: Cli) -> None:
    assert "--param VALUE" in filled("sql", "SELECT ?").stderr
    assert "--param k=VALUE" in filled("sql", "SELECT :k").stderr
