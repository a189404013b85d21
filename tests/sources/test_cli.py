"""belvedere sources, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

pytestmark = pytest.mark.sources


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from belvedere.cli import main; main()", "sources"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


def test_servers_are_started_shown_and_stopped(postgres_server: object, tmp_path: Path) -> None:
    place = str(tmp_path)
    done = run("up", place, "--only", "postgres", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    try:
        assert found["type"] == "postgres"
        assert found["running"]
        with psycopg.connect(
            host=found["host"],
            port=found["port"],
            user=found["user"],
            dbname=found["database"],
            password=Path(found["password_file"]).read_text(),
        ) as connection:
            assert connection.execute("SHOW wal_level").fetchall() == [("logical",)]
        assert json.loads(run("status", place, "--json").stdout) == [found]
    finally:
        stopped = run("down", place, "--json")
    assert json.loads(stopped.stdout) == {"stopped": ["postgres"]}
    assert "not running" in run("status", place).stdout


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    done = run("down", str(tmp_path))
    assert done.returncode != 0
    assert "has no servers" in done.stderr.replace("\n", " ")
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "mine").touch()
    done = run("up", str(tmp_path), "--only", "postgres")
    assert done.returncode != 0
    assert "is not empty" in done.stderr.replace("\n", " ")
    assert (tmp_path / "postgres" / "mine").exists()
