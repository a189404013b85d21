"""How little is loaded before a command answers.

What is loaded decides these tests, never how long it takes.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import belvedere
from belvedere.cli.commands import COMMANDS, Listed
from belvedere.libraries import _Late

LIBRARIES = {
    "numpy",
    "pyarrow",
    "duckdb",
    "sqlglot",
    "pyspark",
    "prometheus_client",
    "prompt_toolkit",
    "pandas",
    "pydantic",
}
OURS = {
    "belvedere.sql.planner",
    "belvedere.expressions",
    "belvedere.statements",
    "belvedere.epochs.coordinator",
    "belvedere.cost",
}
TOLD = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from belvedere.cli import main
main()
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table and a live view with a row each: definitions of both are read by every command."""
    path = tmp_path_factory.mktemp("start") / "shop"
    with belvedere.open(path, slots=2) as db:
        from belvedere.epochs.local import LocalRunner

        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id INT, s STRING, d DECIMAL(10,2), PRIMARY KEY (id))")
        db.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n, sum(d) AS d FROM t WHERE"
            " upper(s) <> 'B' GROUP BY s"
        )
        db.table("t").put({"id": 1, "s": "a", "d": 1})
        db.catch_up()
    return path


def loaded(*arguments: str) -> tuple[str, set[str]]:
    """What a command prints, and the modules of its process when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", TOLD, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["get", "t", "1", "--json"], '{"id": 1, "s": "a", "d": "1.00"}'),
        (["get", "v", "a", "--json"], '{"s": "a", "n": 1, "d": "1.00"}'),
        (["put", "t", "id=1", "s=a", "d=1"], "1 row put"),
        (["delete", "t", "7"], "there was no such row"),
        (["put", "--help"], "It is durable"),
    ],
)
def test_a_command_for_one_row_loads_no_large_library(
    shop: Path, arguments: list[str], answer: str
) -> None:
    printed, modules = loaded("--db", str(shop), *arguments)
    assert answer in printed
    assert modules & (LIBRARIES | OURS) == set()


def test_init_loads_no_large_library(tmp_path: Path) -> None:
    _, modules = loaded("init", str(tmp_path / "new"))
    assert modules & (LIBRARIES | OURS) == set()


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_loads_no_database_either(argument: str) -> None:
    _, modules = loaded(argument)
    assert modules & (LIBRARIES | OURS | {"belvedere.database", "lmdb"}) == set()


def test_the_status_loads_neither_sql_nor_spark(shop: Path) -> None:
    _, modules = loaded("--db", str(shop), "status")
    assert modules & {"duckdb", "sqlglot", "pyspark", "prometheus_client"} == set()


@pytest.mark.parametrize("listed", COMMANDS, ids=lambda listed: listed.name)
def test_the_list_of_commands_says_what_their_functions_say(listed: Listed) -> None:
    function = getattr(import_module(f"belvedere.cli.{listed.home}"), listed.home)
    assert listed.line == (inspect.getdoc(function) or "").splitlines()[0]
    assert listed.name == listed.home.replace("_", "-") or listed.name == "import"
    assert all(
        line.removeprefix("zcat orders.csv.gz | ").startswith("belvedere ")
        for line in listed.examples
    )


def test_a_late_library_becomes_what_it_stands_for() -> None:
    import decimal

    late = _Late("decimal")
    assert late.Decimal is decimal.Decimal
    assert type(late) is ModuleType, "the interpreter looks things up fast in exactly this class"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        late.nothing  # noqa: B018  # the look is what raises
    try:
        decimal.later = 7  # type: ignore[attr-defined]  # what a real module gets after it was loaded
        assert late.later == 7
    finally:
        del decimal.later  # type: ignore[attr-defined]  # the same


def test_public_names_are_found_and_listed() -> None:
    assert set(belvedere.__all__) <= set(dir(belvedere))
    assert all(
        getattr(belvedere, name).__module__.startswith("belvedere.") for name in belvedere.__all__
    )
    with pytest.raises(AttributeError, match="module 'belvedere' has no attribute 'Databse'"):
        belvedere.Databse  # noqa: B018  # the same


INTERRUPTED = """
import sys
wanted = sys.argv[1]
class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == wanted:
            raise KeyboardInterrupt
sys.meta_path.insert(0, CtrlC())
from belvedere.cli import main
sys.argv = ["belvedere", *sys.argv[2:]]
main()
"""


@pytest.mark.parametrize(
    "module",
    [
        "typer",
        "belvedere.cli.app",
        "rich.console",
        "belvedere.cli.get",
        "lmdb",
        "belvedere.stores.embedded",
    ],
)
def test_ctrl_c_while_it_loads_ends_it_like_at_any_other_time(shop: Path, module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, module, "--db", str(shop), "get", "t", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
