"""A database in a directory, and the command line as tests call it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from belvedere.cli.app import app

Cli = Callable[..., Result]
TABLE = """CREATE TABLE readings (place STRING, number INT, amount DECIMAL(10,2), total BIGINT NOT NULL, share DOUBLE, day DATE,
at TIMESTAMP, raw BINARY, good BOOLEAN, PRIMARY KEY (place, number))"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return tmp_path / "shop"


@pytest.fixture
def cli(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs `belvedere --db shop ...` in this process.

    Every call checks that no traceback reached the terminal.
    """
    monkeypatch.delenv("BELVEDERE_DB", raising=False)

    def run(*arguments: str, input: str | bytes | None = None, db: Path | None = shop) -> Result:
        result = CliRunner().invoke(
            app, [*(("--db", str(db)) if db else ()), *arguments], input=input
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        return result

    return run


@pytest.fixture
def filled(cli: Cli, shop: Path) -> Cli:
    """The same, with a table and a view that no pipeline has built."""
    assert cli("init", str(shop), "--slots", "2").exit_code == 0
    assert cli("sql", TABLE).exit_code == 0
    view = (
        "CREATE MATERIALIZED VIEW sums AS SELECT place, count(*) AS n, sum(amount) AS amount FROM"
        " readings GROUP BY place"
    )
    assert cli("sql", view).exit_code == 0
    return cli
