"""Relations of real databases that are not kept: views that come early and late are right, whoever
is killed, and the relation's rows are on our disk only while somebody needs them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.settings import Settings
from belvedere.errors import NotKept
from belvedere.sources.servers import Server
from belvedere.waiting import wait_until
from tests.sources.backends import (
    PostgresWriter,
    ServerBackend,
    Writer,
    new_mariadb,
    new_postgres,
)
from tests.sources.mariadb import Users
from tests.sources.test_views import PATIENCE, RUN

pytestmark = [pytest.mark.sources, pytest.mark.slow]

BACKENDS: dict[str, Callable[[Server], ServerBackend]] = {
    "postgres": new_postgres,
    "mariadb": new_mariadb,
}
SUMS = "SELECT kind, sum(amount) AS total, count(*) AS n FROM {} GROUP BY kind"
PLAIN = "SELECT id, kind, amount, note FROM {}"
MARK = "a note that is long enough to be found"  # in every row


class Place:
    """A database here, and a table there that somebody writes."""

    def __init__(self, backend: ServerBackend, kind: str, path: Path) -> None:
        self.path, self.writer, self.chance = path, backend.writer(), random.Random(3)
        self.writer.run(
            "CREATE TABLE items (id INT PRIMARY KEY, kind INT, amount INT, note VARCHAR(100))",
            self._put(*range(300)),
        )
        self.db = Database(str(path), slots=2)
        self.db._runner = LocalRunner(self.db.store)
        address = backend.server.address
        self.db.sql(
            f"CREATE SOURCE s TYPE {kind} OPTIONS (host = '{address.host}', port ="
            f" '{address.port}', user = '{address.user}', database ="
            f" '{backend.database}', password_file = '{address.password_file}')"
        )

    def _put(self, *numbers: int) -> str:
        chance = self.chance.randrange
        rows = (f"({number}, {chance(5)}, {chance(100)}, '{MARK}')" for number in numbers)
        return f"INSERT INTO items VALUES {', '.join(rows)}"

    def change(self) -> None:
        for _ in range(20):
            number, amount = self.chance.randrange(400), self.chance.randrange(100)
            self.writer.run(
                "BEGIN",
                f"DELETE FROM items WHERE id = {number}",
                *([self._put(number)] if self.chance.random() < 0.7 else []),
                f"UPDATE items SET amount = {amount} WHERE id % 7 = {amount % 7}",
                "COMMIT",
            )

    def check(self) -> None:
        self.db.catch_up(timeout=PATIENCE)
        for view in self.db.state().views.values():
            text = SUMS if "GROUP" in view.select else PLAIN
            rows = self.db.view(view.name).to_arrow().to_pylist()
            there = [tuple(map(_plain, row)) for row in _rows(self.writer, text.format("items"))]
            assert sorted(tuple(row.values()) for row in rows) == sorted(there)

    def await_epoch(self) -> None:
        """Of whoever runs."""
        before = self.db.status().epoch
        assert wait_until(lambda: self.db.status().epoch > before or None, PATIENCE)

    def rows_here(self) -> int:
        """In base tables of all ids there are."""
        ids = range(1, 60)
        return sum((self.db.store.base.count(i) or 0) > 10 for i in ids if self._is_there(i))

    def _is_there(self, number: int) -> bool:
        known = {self.db.state().table("s.items").id}
        return number in known | {f.table for f in self.db.state().filled.values()}

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Another process that follows and maintains, until it is killed."""
        command = [sys.executable, "-c", RUN, str(self.path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"running\n"
            yield process
            os.kill(process.pid, signal.SIGKILL)


def _rows(writer: Writer, text: str) -> list[tuple[Any, ...]]:
    return writer.rows(text) if isinstance(writer, PostgresWriter) else _run(writer, text)


def _run(writer: Writer, text: str) -> list[tuple[Any, ...]]:
    assert isinstance(writer, Users)
    return writer.run(text)


def _plain(value: Any) -> Any:
    """MariaDB's sums are decimals."""
    return value if isinstance(value, str) else int(value)


@pytest.fixture(params=BACKENDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    server: Server = request.getfixturevalue(f"{request.param}_server")
    made = Place(BACKENDS[request.param](server), request.param, tmp_path / "db")
    yield made
    for view in list(made.db.state().views):
        made.db.sql(f"DROP MATERIALIZED VIEW {view}")
    made.db.sql("DROP SOURCE s FORCE")
    made.db.close()
    made.writer.close()


def test_views_come_and_go_and_rows_are_here_only_for_them(place: Place) -> None:
    db = place.db
    db.sql(f"CREATE MATERIALIZED VIEW sums AS {SUMS.format('s.items')}")
    place.check()
    assert (place.rows_here(), db.state().filled) == (0, {})
    for text in ("SELECT * FROM s.items", "SELECT * FROM s.items WHERE id = 3"):
        with pytest.raises(NotKept, match="ALTER SOURCE s COPY items"):
            db.sql(text)
    with pytest.raises(NotKept):
        db.verify_base("s.items")
    for _ in range(3):
        place.change()
        with place.running():
            place.change()
            place.await_epoch()
    place.check()

    with place.running():
        db.sql(f"CREATE MATERIALIZED VIEW plain AS {PLAIN.format('s.items')}")
        place.change()
    place.check()
    assert (place.rows_here(), db.state().filled) == (0, {})
    (source,) = db.status().sources
    assert [relation.is_kept for relation in source.relations] == [False]

    db.sql("ALTER SOURCE s COPY items")
    place.change()
    place.check()
    assert db.sql("SELECT count(*) AS n FROM s.items").to_pylist() == [
        {"n": len(_rows(place.writer, "SELECT id FROM items"))}
    ]
    place.change()
    place.check()
    assert db.verify_base("s.items").ok
    db.sql(
        "CREATE MATERIALIZED VIEW more AS SELECT kind, sum(amount) AS total, count(*) AS n"
        " FROM s.items GROUP BY kind HAVING count(*) > 0"
    )
    place.check()


def test_rows_are_no_more_on_the_disk_until_they_are_kept(place: Place) -> None:
    """There are so many of them that they come into files; the view has no notes."""
    place.writer.run(place._put(*range(1000, 31_000)))
    place.db.sql(f"CREATE MATERIALIZED VIEW sums AS {SUMS.format('s.items')}")
    place.check()
    place.change()
    place.check()
    assert not is_on_disk(place)
    place.db.sql("ALTER SOURCE s COPY items")
    place.check()
    assert is_on_disk(place)


def is_on_disk(place: Place) -> bool:
    """Whether files of rows have notes, when nothing is left that nobody needs."""
    coordinator = place.db._coordinator(Settings())
    assert coordinator.acquire()
    coordinator.clean()
    coordinator.release()
    return any(MARK.encode() in path.read_bytes() for path in (place.path / "base").rglob("*.run"))


def test_a_truncated_relation_is_loaded_again_and_its_views_are_built_anew(place: Place) -> None:
    db = place.db
    db.sql(f"CREATE MATERIALIZED VIEW sums AS {SUMS.format('s.items')}")
    place.check()
    before = db.view("sums").to_arrow().to_pylist()
    place.writer.run("TRUNCATE TABLE items", place._put(1), place._put(2))
    db.catch_up(timeout=PATIENCE)
    assert db.view("sums").to_arrow().to_pylist() == before
    assert "ALTER SOURCE s RELOAD items" in db.status().sources[0].advice
    db.sql("ALTER SOURCE s RELOAD items")
    place.check()
    place.change()
    place.check()
    assert db.state().filled == {}


@pytest.mark.spark
def test_a_view_is_verified_from_a_copy_that_is_forgotten(place: Place) -> None:
    db = place.db
    db.sql(f"CREATE MATERIALIZED VIEW sums AS {SUMS.format('s.items')}")
    place.check()
    place.change()
    assert db.verify("sums").ok
    db._runner = LocalRunner(db.store)
    place.change()
    place.check()
    assert db.state().filled == {}
