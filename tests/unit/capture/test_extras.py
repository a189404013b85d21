"""Without the clients of databases, everything else works, and sources say what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from belvedere.database import Database

# None in sys.modules is what Python itself takes for a module that is not there
RUN = """
import sys
for name in ("psycopg", "pymysql", "pymysqlreplication"):
    sys.modules[name] = None
from belvedere.cli import main
main()
"""


def run(db: Path, statement: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, "sql", "--db", str(db), statement]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_missing_client_is_said_with_its_install_line(kind: str, tmp_path: Path) -> None:
    Database(str(tmp_path / "db"), slots=2).close()
    secret = tmp_path / "secret"
    secret.write_text("x")
    done = run(
        tmp_path / "db",
        f"CREATE SOURCE s TYPE {kind} OPTIONS (host = 'nowhere', database = 'd', user = 'u',"
        f" password_file = '{secret}')",
    )
    assert done.returncode == 1
    assert 'pip install "belvedere[sources]"' in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    done = run(tmp_path / "db", "SHOW SOURCES")
    assert done.returncode == 0, done.stderr


def test_files_need_no_more_than_belvedere(tmp_path: Path) -> None:
    Database(str(tmp_path / "db"), slots=2).close()
    (tmp_path / "prices.csv").write_text("item,price\na,1\n")
    done = run(
        tmp_path / "db",
        f"CREATE SOURCE s TYPE files OPTIONS (path = '{tmp_path / 'prices.csv'}', key = 'item',"
        f" kept = '{tmp_path / 'kept'}'); SHOW TABLES IN s",
    )
    assert done.returncode == 0, done.stderr
    assert "prices" in done.stdout
