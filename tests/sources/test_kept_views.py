"""Views that an algorithm keeps over a PostgreSQL and a MariaDB: money that moves between both, and
processes that are killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from belvedere.connections import connect
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import SourceError, SourceUnreachable
from belvedere.sources.base import Question
from belvedere.sources.servers import Address, Server
from belvedere.waiting import wait_until
from tests.sources.test_views import RUN, create_source, to_mariadb, to_postgres

pytestmark = pytest.mark.sources

PATIENCE = 30.0
OWNERS, EACH = 4, 100
ALGORITHMS = ("strobe", "t-strobe", "g-strobe", "c-strobe", "asof")
VIEW = (
    "CREATE MATERIALIZED VIEW wealth WITH (algorithm = '{0}') AS SELECT s.id, s.amount AS here,"
    " c.amount AS there FROM shop.safe s JOIN crm.cellar c ON s.id = c.id"
)
ALONE = (
    "CREATE MATERIALIZED VIEW wealth WITH (algorithm = '{0}') AS SELECT s.id, s.amount AS here,"
    " n.label AS there FROM shop.safe s JOIN shop.labels n ON s.id = n.id"
)
PARTS = "CREATE TABLE belvedere_transactions (gid varchar(40) PRIMARY KEY, sources varchar(40))"

Place = tuple[Database, Address, Address]


@pytest.fixture
def place(tmp_path: Path, postgres_server: Server, mariadb_server: Server) -> Iterator[Place]:
    shop, crm = postgres_server.address, mariadb_server.address
    with to_postgres(shop) as connection:
        connection.execute("DROP TABLE IF EXISTS safe, labels, belvedere_transactions")
        connection.execute("CREATE TABLE safe (id bigint PRIMARY KEY, amount bigint)")
        connection.execute("CREATE TABLE labels (id int PRIMARY KEY, label bigint)")
        connection.execute(f"INSERT INTO safe SELECT i, {EACH} FROM generate_series(1, {OWNERS}) i")
        connection.execute(PARTS.encode())
    with to_mariadb(crm) as other, other.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS cellar, belvedere_transactions")
        cursor.execute("CREATE TABLE cellar (id bigint PRIMARY KEY, amount bigint)")
        cursor.executemany(
            "INSERT INTO cellar VALUES (%s, %s)", [(i + 1, EACH) for i in range(OWNERS)]
        )
        cursor.execute(PARTS)
    with Database(str(tmp_path / "db"), slots=2) as found:
        found._runner = LocalRunner(found.store)
        for name, address in (("shop", shop), ("crm", crm)):
            found.sql(create_source(name, address))
        yield found, shop, crm
        for view in list(found.state().views.values()):
            found.sql(f"DROP MATERIALIZED VIEW {view.name}")
        for name in ("shop", "crm"):
            found.sql(f"DROP SOURCE IF EXISTS {name} FORCE")
    with to_postgres(shop) as connection:
        slots = connection.execute("SELECT slot_name FROM pg_replication_slots").fetchall()
        connection.execute("DROP TABLE belvedere_transactions")
    with to_mariadb(crm) as other, other.cursor() as cursor:
        cursor.execute("DROP TABLE belvedere_transactions")
    assert not slots, "what was made for the view is gone with it"


class Movers:
    """Money goes from a safe to a cellar or back, until they are stopped; the parts commit apart
    and in either order.
    """

    def __init__(self, place: Place) -> None:
        _, self._shop, self._crm = place
        self._stop = threading.Event()
        self.moved = 0
        self._thread = threading.Thread(target=self._move)

    def __enter__(self) -> Movers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def moved_more(self, times: int = 10) -> None:
        before = self.moved
        assert wait_until(lambda: self.moved >= before + times or None, PATIENCE)

    def _move(self) -> None:
        chance = random.Random(1)
        with to_postgres(self._shop) as shop, to_mariadb(self._crm) as crm:
            while not self._stop.wait(0.0 if self.moved % 3 else 0.5):  # quiet moments between
                self._one(chance, shop, crm)
                self.moved += 1

    def _one(self, chance: random.Random, shop: Any, crm: Any) -> None:
        owner, amount = chance.randint(1, OWNERS), chance.randint(-20, 20)
        gid = f"g{self.moved}"
        note = "INSERT INTO belvedere_transactions VALUES (%s, 'shop,crm')"
        crm.begin()
        with crm.cursor() as cursor, shop.transaction():
            for connection, table, sign in ((shop, "safe", -1), (cursor, "cellar", 1)):
                change = f"UPDATE {table} SET amount = amount + %s WHERE id = %s"
                connection.execute(change, [sign * amount, owner])
                connection.execute(note, [gid])
            if chance.random() < 0.5:
                crm.commit()
        crm.commit()


def shown(db: Database, view: str = "wealth") -> list[tuple[int, int, int]]:
    rows = db.view(view).to_arrow().to_pylist()
    return sorted((row["id"], row["here"], row["there"]) for row in rows)


def recomputed(shop: Address, crm: Address) -> list[tuple[int, int, int]]:
    with to_postgres(shop) as connection:
        here = dict(connection.execute("SELECT id, amount FROM safe").fetchall())
    with to_mariadb(crm) as other, other.cursor() as cursor:
        cursor.execute("SELECT id, amount FROM cellar")
        there = dict(cursor.fetchall())
    return [(n, here[n], there[n]) for n in sorted(here.keys() & there.keys())]


def is_behind(db: Database, epoch: int) -> bool | None:
    return db.status().epoch > epoch or None


def total(db: Database) -> int:
    return sum(here + there for _, here, there in shown(db))


@pytest.mark.parametrize("algorithm", ["g-strobe", "asof"])
def test_every_read_shows_the_same_total_and_a_killed_process_loses_nothing(
    place: Place, tmp_path: Path, algorithm: str
) -> None:
    db, shop, crm = place
    with Movers(place) as movers:
        movers.moved_more(3)
        db.sql(VIEW.format(algorithm))
        db.catch_up(timeout=PATIENCE)
        for _ in range(2):
            command = [sys.executable, "-c", RUN, str(tmp_path / "db")]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == b"running\n"
                epoch = db.status().epoch
                for _ in range(12):
                    assert total(db) == 2 * OWNERS * EACH
                    movers.moved_more(1)
                assert wait_until(partial(is_behind, db, epoch), PATIENCE)
                os.kill(process.pid, signal.SIGKILL)
    db.catch_up(timeout=PATIENCE)
    assert shown(db) == recomputed(shop, crm)
    assert total(db) == 2 * OWNERS * EACH


@pytest.mark.parametrize("algorithm", ["asof", "t-strobe"])
def test_two_relations_of_one_server(place: Place, algorithm: str) -> None:
    db, shop, _ = place
    chance = random.Random(3)
    db.sql(ALONE.format(algorithm))
    with to_postgres(shop) as connection:
        for _ in range(3):
            with connection.transaction():
                for _ in range(4):
                    number = chance.randrange(8)
                    table = chance.choice(("safe", "labels"))
                    connection.execute(f"DELETE FROM {table} WHERE id = {number}".encode())
                    if chance.random() < 0.8:
                        connection.execute(f"INSERT INTO {table} VALUES ({number}, 7)".encode())
            db.catch_up(timeout=PATIENCE)
            right = "SELECT s.id, s.amount, n.label FROM safe s JOIN labels n USING (id) ORDER BY 1"
            assert shown(db) == connection.execute(right.encode()).fetchall()


class Writers:
    """Rows of both servers change, each in a transaction of its own, until they are stopped; a
    server that is gone is asked again.
    """

    def __init__(self, place: Place) -> None:
        _, shop, crm = place
        self._stop = threading.Event()
        self.written = [0, 0]
        works = (partial(self._safe, shop), partial(self._cellar, crm))
        self._threads = [
            threading.Thread(target=self._loop, args=(number, work))
            for number, work in enumerate(works)
        ]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wrote_more(self) -> None:
        before = list(self.written)
        pairs = partial(zip, self.written, before, strict=True)
        assert wait_until(lambda: all(n >= b + 10 for n, b in pairs()) or None, PATIENCE)

    def _loop(self, number: int, work: Callable[[random.Random], None]) -> None:
        chance = random.Random(number)
        while not self._stop.wait(0.01):
            try:
                work(chance)
            except (psycopg.Error, pymysql.Error):
                continue  # the server was killed: it comes back
            self.written[number] += 1

    def _safe(self, shop: Address, chance: random.Random) -> None:
        with to_postgres(shop) as connection, connection.transaction():
            for number in chance.sample(range(8), 3):
                connection.execute("DELETE FROM safe WHERE id = %s", [number])
                if chance.random() < 0.7:
                    row = [number, chance.randrange(50)]
                    connection.execute("INSERT INTO safe VALUES (%s, %s)", row)

    def _cellar(self, crm: Address, chance: random.Random) -> None:
        with to_mariadb(crm) as connection, connection.cursor() as cursor:
            number = chance.randrange(8)
            if chance.random() < 0.4:
                cursor.execute("DELETE FROM cellar WHERE id = %s", [number])
            else:
                row = [number, chance.randrange(50)]
                cursor.execute("REPLACE INTO cellar VALUES (%s, %s)", row)


def test_views_stay_right_while_servers_are_killed(
    place: Place, postgres_server: Server, mariadb_server: Server
) -> None:
    """One view for each algorithm, so that servers are killed once for all."""
    db, shop, crm = place
    names = {algorithm: f"w_{algorithm.replace('-', '_')}" for algorithm in ALGORITHMS}
    for algorithm, name in names.items():
        db.sql(VIEW.format(algorithm).replace("VIEW wealth", f"VIEW {name}"))
    pipeline = db.start()
    with Writers(place) as writers:
        for server in (postgres_server, mariadb_server):
            writers.wrote_more()
            server.kill()
            server.up()
            writers.wrote_more()
    assert wait_until(partial(is_caught_up, db), PATIENCE * 4)
    for name in names.values():
        assert shown(db, name) == recomputed(shop, crm), name
    pipeline.stop()


def is_caught_up(db: Database) -> bool | None:
    """Also when a server has just come back."""
    try:
        db.catch_up(timeout=PATIENCE)
    except SourceError:
        return None
    return True


@pytest.mark.spark
def test_many_values_are_asked_in_tasks_of_spark(place: Place) -> None:
    """And an error of the source arrives as what it is, not as one of Spark."""
    db, shop, crm = place
    db._runner = runner = db._spark_runner()
    db.sql(ALONE.format("asof").replace("shop.labels n", "crm.cellar n").replace("label", "amount"))
    db.catch_up(timeout=PATIENCE)
    with to_mariadb(crm) as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO cellar SELECT seq + 100, 7 FROM seq_1_to_25000")
    with to_postgres(shop) as connection:
        connection.execute("INSERT INTO safe SELECT i + 100, 3 FROM generate_series(1, 25000) i")
    db.catch_up(timeout=PATIENCE * 4)
    assert len(shown(db)) == 25_000 + OWNERS
    assert shown(db) == recomputed(shop, crm)
    assert runner.spark.sparkContext.statusTracker().getJobIdsForGroup("belvedere-asking")
    right = db.state().source("crm")
    cellar = db.connections.of(right).describe("cellar")
    wrong = replace(right, options={**right.options, "port": "1"})
    with pytest.raises(SourceUnreachable, match="does not answer"):
        runner.ask(connect, wrong, [Question(cellar, ("amount",))])
