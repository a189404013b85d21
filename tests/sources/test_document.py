"""What docs/sources.md shows: its statements and commands, run as they stand there against a real
PostgreSQL, by a user with the rights that the page gives.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import belvedere
from belvedere.sources.servers import Server
from belvedere.waiting import wait_until
from tests.integration.test_docs import DOCS, blocks

pytestmark = [pytest.mark.sources, pytest.mark.spark]

PAGE = DOCS / "sources.md"
PATIENCE = 180.0
BELVEDERE = (sys.executable, "-c", "from belvedere.cli import main; main()")
Connection = psycopg.Connection[tuple[object, ...]]


def commands() -> list[str]:
    """The indented lines of the page's first section."""
    section = PAGE.read_text(encoding="utf-8").split("\n## ")[1]
    outside = re.sub(r"^```.*?^```$", "", section, flags=re.DOTALL | re.MULTILINE)
    return [line.strip() for line in outside.splitlines() if line.startswith("    ")]


class Terminal:
    """In a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.environment = directory, dict(os.environ)

    def start(self, line: str) -> subprocess.Popen[str]:
        name, *words = shlex.split(line)
        assert name == "belvedere"
        return subprocess.Popen(
            [*BELVEDERE, *words],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, line: str) -> str:
        if line.startswith("export "):
            variable, _, value = shlex.split(line)[1].partition("=")
            self.environment[variable] = value
            return ""
        with self.start(line) as process:
            said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        return said


@contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[None]:
    """Until Ctrl-C."""
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said


@pytest.fixture
def users(postgres_server: Server) -> Iterator[Connection]:
    address = postgres_server.address
    with psycopg.connect(
        host=address.host,
        port=address.port,
        dbname=address.database,
        user=address.user,
        password=address.password,
        autocommit=True,
    ) as found:
        found.execute("DROP TABLE IF EXISTS orders, customers")
        found.execute("CREATE TABLE customers (id bigint PRIMARY KEY, name text)")
        found.execute("CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount bigint)")
        found.execute("INSERT INTO customers VALUES (1, 'ada')")
        found.execute("INSERT INTO orders VALUES (1, 1, 30), (2, 1, 5)")
        yield found
        found.execute("DROP TABLE orders, customers")
        found.execute("DROP PUBLICATION belvedere_shop")
        found.execute("DROP ROLE viewer")


def test_the_page_leads_to_a_live_view(
    postgres_server: Server, users: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, terminal = postgres_server.address, Terminal(tmp_path)
    there, here = (b.text for b in blocks(PAGE) if b.language == "sql")
    users.execute(there.encode())
    text = here.replace("'db1'", f"'{address.host}'").replace("'5432'", f"'{address.port}'")
    (tmp_path / "shop.sql").write_text(text)
    install, export, init, sql, run, scan, status, remove = commands()
    assert install == 'pip install "belvedere[sources]"'
    for line in (export, init, sql):
        terminal.run(line)
    with running(terminal.start(run)), belvedere.open(tmp_path / "live") as db:
        assert wait_until(lambda: db.status().views[0].is_live or None, PATIENCE)
        shown = terminal.run(scan)
        assert re.search(r"ada\W+35\W+2", shown), shown
        assert "following" in terminal.run(status)
        monkeypatch.setenv("SHOP_PASSWORD", terminal.environment["SHOP_PASSWORD"])
        with db.session(PATIENCE) as mine:
            users.execute("DELETE FROM orders WHERE id = 2")
            mine.wrote()
            assert mine.sql("SELECT total FROM spent").to_pylist() == [{"total": 30}]
    terminal.run(remove)
    assert users.execute("SELECT count(*) FROM pg_replication_slots").fetchone() == (0,)
