"""The commands that need Spark: in this process where they can share a session, as a process of its
own where signals matter.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import belvedere
from belvedere.cli.app import app
from belvedere.waiting import wait_until
from tests.integration import shop

pytestmark = pytest.mark.spark
LONG = 300.0  # seconds, for a machine that is busy with other things


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with belvedere.open(tmp_path / "shop", slots=2) as db:
        db.sql(shop.TABLE)
        shop.create(db, {name: shop.VIEWS[name] for name in ("revenue", "statuses")})
        db.table("orders").put_many(shop.rows(500, 1))
    return tmp_path / "shop"


def cli(path: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(app, ["--db", str(path), *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


def test_catch_up_then_reads_then_a_wrong_row_is_found_and_repaired(
    path: Path, spark: SparkSession
) -> None:
    caught = json.loads(cli(path, "catch-up", "--json").stdout)
    assert caught["epoch"] == len(caught["epochs"]) > 0
    assert "there was nothing to do" in cli(path, "catch-up").stdout
    listed = [
        json.loads(line) for line in cli(path, "scan", "revenue", "--json").stdout.splitlines()
    ]
    assert {row["region"] for row in listed} == {"emea", "apac", "amer", None}
    assert json.loads(cli(path, "get", "revenue", "NULL", "--json").stdout) in listed
    sound = cli(path, "verify")
    assert sound.exit_code == 0
    assert sound.stdout.count("✓") == 2

    with belvedere.open(path) as db:
        shop.damage(db, "revenue")
    wrong = cli(path, "verify", "revenue")
    assert wrong.exit_code == 1
    assert "revenue: 1 wrong row" in wrong.stdout
    planned = cli(path, "verify", "revenue", "--repair")
    assert planned.exit_code == 1
    assert "nothing was changed" in planned.stdout
    told = cli(path, "verify", "revenue", "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["views"][0]["counts"] == {"different": 1}
    repaired = cli(path, "verify", "revenue", "--repair", "--yes")
    assert repaired.exit_code == 0
    assert "1 row corrected" in repaired.stdout
    assert cli(path, "verify", "revenue").exit_code == 0


def test_refresh_is_a_statement(path: Path, spark: SparkSession) -> None:
    assert (
        "caught up"
        in cli(
            path, "sql", "REFRESH MATERIALIZED VIEW revenue; SELECT count(*) AS n FROM revenue"
        ).stdout
    )


def test_verify_says_that_a_view_is_not_built_yet(path: Path, spark: SparkSession) -> None:
    result = cli(path, "verify", "revenue")
    assert result.exit_code == 1
    assert "has not been started" in result.stdout


def test_run_keeps_views_until_it_is_told_to_stop(path: Path) -> None:
    """SIGTERM ends it cleanly, and nothing of Spark's start-up reaches the terminal."""
    command = [
        sys.executable,
        "-c",
        "from belvedere.cli import main; main()",
        "--db",
        str(path),
        "run",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as child:
        try:
            with belvedere.open(path) as db:
                assert wait_until(lambda: _is_current(db) or None, LONG)
                db.table("orders").put_many(shop.rows(100, 2))
                assert wait_until(lambda: _is_current(db) or None, LONG)
                assert f"pid {child.pid}" in db.status().coordinator
                child.send_signal(signal.SIGTERM)
                out, errors = child.communicate(timeout=LONG)
                assert db.status().coordinator == ""
        finally:
            child.kill()
    assert child.returncode == 0, errors
    assert "stopped at epoch" in out
    assert "600 operations brought into the views" in out
    assert errors == ""


def _is_current(db: belvedere.Database) -> bool:
    status = db.status()
    return not status.lag_operations and all(v.state == "live" for v in status.views)
