"""Views over real databases: PostgreSQL joined with MariaDB, a file and a table of ours, while all
of them change, servers are killed, and so is the process that follows.
"""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import SourceError
from belvedere.sources.servers import Address, Server
from belvedere.waiting import wait_until

pytestmark = [pytest.mark.sources, pytest.mark.slow]

PATIENCE = 180.0
_BETWEEN_FILES = 0.2  # seconds; whoever reads must be done before the next is there
VIEW = """CREATE MATERIALIZED VIEW spent AS
SELECT c.id, c.name, n.note, r.rate, sum(o.amount) AS total, count(*) AS orders
FROM shop.orders o JOIN crm.customers c ON o.customer = c.id JOIN sheet.rates r ON r.id = c.id
LEFT JOIN notes n ON n.id = c.id
GROUP BY c.id, c.name, n.note, r.rate"""
Places = tuple[Database, Address, Address, Path]
# another process with monitor and coordinator, until it is killed
RUN = """
import sys
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
db = Database(sys.argv[1])
db._runner = LocalRunner(db.store)
db.start()
print("running", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def db(tmp_path: Path, postgres_server: Server, mariadb_server: Server) -> Iterator[Places]:
    shop, crm, rates = postgres_server.address, mariadb_server.address, tmp_path / "rates.csv"
    prepare_servers(shop, crm)
    write_rates(rates, {number: number for number in range(5)})
    with Database(str(tmp_path / "db"), slots=2) as found:
        found._runner = LocalRunner(found.store)
        found.sql("CREATE TABLE notes (id BIGINT, note STRING, PRIMARY KEY (id))")
        for name, address in (("shop", shop), ("crm", crm)):
            found.sql(create_source(name, address))
        found.sql(
            f"CREATE SOURCE sheet TYPE files OPTIONS (path = '{rates}', key = 'id', every = '100 ms',"
            f" kept = '{tmp_path / 'kept'}', columns = 'id BIGINT, rate BIGINT')"
        )
        yield found, shop, crm, rates
        found.sql("DROP MATERIALIZED VIEW IF EXISTS spent")
        for name in ("shop", "crm", "sheet"):
            found.sql(f"DROP SOURCE IF EXISTS {name} FORCE")


def create_source(name: str, address: Address) -> str:
    return (
        f"CREATE SOURCE {name} TYPE {address.type} OPTIONS (host = '{address.host}', port ="
        f" '{address.port}', database = '{address.database}', user = '{address.user}',"
        f" password_file = '{address.password_file}')"
    )


def to_postgres(address: Address) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(
        host=address.host,
        port=address.port,
        dbname=address.database,
        user=address.user,
        password=address.password,
        autocommit=True,
    )


def to_mariadb(address: Address) -> Any:
    return pymysql.connect(
        host=address.host,
        port=address.port,
        database=address.database,
        user=address.user,
        password=address.password,
        autocommit=True,
    )


def prepare_servers(shop: Address, crm: Address) -> None:
    with to_postgres(shop) as connection:
        connection.execute("DROP TABLE IF EXISTS orders")
        connection.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount bigint)"
        )
        connection.execute("INSERT INTO orders SELECT i, i % 5, i FROM generate_series(1, 20) i")
    with to_mariadb(crm) as other, other.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS customers")
        cursor.execute("CREATE TABLE customers (id bigint PRIMARY KEY, name varchar(20))")
        cursor.executemany(
            "INSERT INTO customers VALUES (%s, %s)", [(i, f"c{i}") for i in range(5)]
        )


def write_rates(path: Path, rates: dict[int, int]) -> None:
    """Beside, and renamed."""
    part = path.with_suffix(".part")
    with open(part, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "rate"])
        writer.writerows(rates.items())
    os.rename(part, path)


def read_rates(path: Path) -> dict[int, int]:
    with open(path, newline="") as file:
        return {int(row["id"]): int(row["rate"]) for row in csv.DictReader(file)}


class Writers:
    """Threads that change all places until they are stopped, one each; a server that is gone is
    asked again.
    """

    def __init__(self, db: Database, shop: Address, crm: Address, rates: Path) -> None:
        self._db, self._shop, self._crm, self._file = db, shop, crm, rates
        self._stop = threading.Event()
        works = (self._orders, self._customers, self._notes, self._rates)
        self.written = [0] * len(works)
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
        """Wait until each of them has written some."""
        before = list(self.written)
        assert wait_until(lambda: self._is_ahead(before, 5) or None, PATIENCE)

    def _is_ahead(self, before: list[int], by: int) -> bool:
        return all(now >= then + by for now, then in zip(self.written, before, strict=True))

    def _loop(self, number: int, work: Any) -> None:
        chance = random.Random(number)
        while not self._stop.wait(0.01):
            try:
                work(chance)
            except (psycopg.Error, pymysql.Error):
                continue  # the server was killed: it comes back
            self.written[number] += 1

    def _orders(self, chance: random.Random) -> None:
        with to_postgres(self._shop) as connection, connection.transaction():
            for _ in range(chance.randint(1, 4)):
                number = chance.randrange(40)
                if chance.random() < 0.3:
                    connection.execute("DELETE FROM orders WHERE id = %s", [number])
                else:
                    connection.execute(
                        "INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
                        " customer = excluded.customer, amount = excluded.amount",
                        [number, chance.randrange(6), chance.randrange(100)],
                    )

    def _customers(self, chance: random.Random) -> None:
        with to_mariadb(self._crm) as connection, connection.cursor() as cursor:
            number = chance.randrange(6)
            if chance.random() < 0.3:
                cursor.execute("DELETE FROM customers WHERE id = %s", [number])
            else:
                name = f"c{chance.randrange(100)}"
                cursor.execute("REPLACE INTO customers VALUES (%s, %s)", [number, name])

    def _notes(self, chance: random.Random) -> None:
        note = {"id": chance.randrange(6), "note": f"n{chance.randrange(3)}"}
        self._db.table("notes").put(note)

    def _rates(self, chance: random.Random) -> None:
        ids = chance.sample(range(6), 4)
        write_rates(self._file, {number: chance.randrange(3) for number in ids})
        self._stop.wait(_BETWEEN_FILES)


def recomputed(db: Database, shop: Address, crm: Address, file: Path) -> list[tuple[Any, ...]]:
    """From what the servers themselves say."""
    with to_postgres(shop) as connection:
        orders = connection.execute("SELECT customer, amount FROM orders").fetchall()
    with to_mariadb(crm) as other, other.cursor() as cursor:
        cursor.execute("SELECT id, name FROM customers")
        customers = dict(cursor.fetchall())
    notes = {row["id"]: row["note"] for row in db.table("notes").scan()}
    rates = read_rates(file)
    found: dict[int, list[int]] = {}
    for customer, amount in orders:
        if customer in customers and customer in rates:
            found.setdefault(customer, []).append(amount)
    return sorted(
        (number, customers[number], notes.get(number), rates[number], sum(amounts), len(amounts))
        for number, amounts in found.items()
    )


def shown(db: Database) -> list[tuple[Any, ...]]:
    rows = db.view("spent").to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def catch_up(db: Database) -> None:
    """Also when a server has just come back."""

    def caught_up() -> bool | None:
        try:
            db.catch_up(timeout=PATIENCE)
        except SourceError:
            return None
        return True

    assert wait_until(caught_up, PATIENCE)


def test_a_view_over_databases_and_ours_stays_right_while_servers_are_killed(
    db: Places, postgres_server: Server, mariadb_server: Server
) -> None:
    database = db[0]
    database.sql(VIEW)
    catch_up(database)
    assert shown(database) == recomputed(*db)
    pipeline = database.start()
    with Writers(*db) as writers:
        writers.wrote_more()
        for server in (postgres_server, mariadb_server):
            server.kill()
            server.up()
            writers.wrote_more()
    catch_up(database)
    assert shown(database) == recomputed(*db)
    states = {s.name: s.state for s in database.status().sources}
    assert states == dict.fromkeys(("shop", "crm", "sheet"), "following")
    pipeline.stop()


def test_nothing_is_lost_or_twice_when_the_process_that_follows_is_killed(
    db: Places, tmp_path: Path
) -> None:
    database = db[0]
    database.sql(VIEW)
    with Writers(*db) as writers:
        for _ in range(3):
            command = [sys.executable, "-c", RUN, str(tmp_path / "db")]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == b"running\n"
                writers.wrote_more()
                os.kill(process.pid, signal.SIGKILL)
    catch_up(database)
    assert shown(database) == recomputed(*db)


@pytest.mark.spark
def test_spark_recomputes_the_same(db: Places) -> None:
    database = db[0]
    database.sql(VIEW)
    with Writers(*db) as writers:
        writers.wrote_more()
    catch_up(database)
    assert database.verify("spent").ok
    database.sql("ALTER SOURCE shop COPY orders")
    database.catch_up(timeout=PATIENCE)
    query = "SELECT count(*) AS n, sum(orders.amount) AS total FROM shop.orders"
    spark = [row.asDict() for row in database.sql(query).to_spark().collect()]
    assert spark == database.sql(query).to_pylist()
