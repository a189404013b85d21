"""Processes move money between accounts in two tables, and are killed: nobody ever sees another
total.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner

pytestmark = pytest.mark.slow

ACCOUNTS, BALANCE = 8, 100
TOTAL = 2 * ACCOUNTS * BALANCE
TABLES = ("giro", "savings")
WRITER = """
import itertools, os, random, sys
import belvedere

chance = random.Random(int(sys.argv[2]))
db = belvedere.open(sys.argv[1])
for number in itertools.count():
    places = [(table, id) for table in ("giro", "savings") for id in range(8)]
    (source, from_), (target, to) = chance.sample(places, 2)
    amount = chance.randrange(1, 50)

    def move(t):
        giver, taker = t.table(source).get(from_), t.table(target).get(to)
        t.table(source).put({**giver, "balance": giver["balance"] - amount})
        t.table(target).put({**taker, "balance": taker["balance"] + amount})
        t.table("moves").put({"writer": os.getpid(), "number": number})

    db.transact(move, retries=10_000)
    print(number, flush=True)
"""
PIPELINE = """
import sys
import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.waiting import wait_until

db = belvedere.open(sys.argv[1])
db._runner = LocalRunner(db.store)
pipeline = db.start(max_rows=int(sys.argv[2]))
seen = db.committed()[0]
while True:
    seen = wait_until(lambda: db.committed()[0] if db.committed()[0] > seen else None, 600)
    print(seen, flush=True)
"""
VIEWS = """
CREATE MATERIALIZED VIEW both AS
    SELECT id, balance FROM giro UNION ALL SELECT id, balance FROM savings;
CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total, count(*) AS n FROM both;
CREATE MATERIALIZED VIEW pairs AS
    SELECT g.id, g.balance AS giro, s.balance AS savings FROM giro g JOIN savings s USING (id);
"""
Start = Callable[[str, int], subprocess.Popen[str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with belvedere.open(tmp_path / "bank", slots=2) as db:
        for table in TABLES:
            db.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, balance BIGINT)")
        db.sql("CREATE TABLE moves (writer BIGINT, number BIGINT, PRIMARY KEY (writer, number))")
        db.sql(VIEWS)
        accounts = [{"id": id, "balance": BALANCE} for id in range(ACCOUNTS)]
        with db.transaction() as t:
            for table in TABLES:
                t.table(table).put_many(accounts)
        db._runner = LocalRunner(db.store)
        db.catch_up()
    return tmp_path / "bank"


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    children: list[subprocess.Popen[str]] = []

    def run(code: str, argument: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, str(path), str(argument)]
        children.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return children[-1]

    yield run
    for child in children:
        kill(child)


def kill(process: subprocess.Popen[str]) -> list[str]:
    """What it has said that nobody has read."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    if process.stdout.closed:
        return []
    rest = process.stdout.read().splitlines()
    process.stdout.close()
    process.wait()
    return rest


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "it has ended by itself"
    return line


def check_totals(db: Database) -> None:
    """In a view over a view, in a join, and in the tables themselves."""
    assert db.view("total").get() == {"total": TOTAL, "n": 2 * ACCOUNTS}
    (pairs,) = db.sql("SELECT sum(giro) + sum(savings) AS total FROM pairs").to_pylist()
    assert pairs == {"total": TOTAL}
    of_tables = "SELECT balance FROM giro UNION ALL SELECT balance FROM savings"
    (now,) = db.sql(f"SELECT sum(balance) AS total FROM ({of_tables}) AS b").to_pylist()
    assert now == {"total": TOTAL}
    with db.transaction() as t:
        rows = [row for table in TABLES for row in t.table(table).scan()]
    assert sum(row["balance"] for row in rows) == TOTAL


def test_the_total_is_always_the_same_whoever_is_killed(path: Path, start: Start) -> None:
    chance = random.Random(5)
    writers = {start(WRITER, seed): 0 for seed in range(3)}
    said: dict[int, int] = {}  # by writer, moves that were acknowledged
    pipeline = start(PIPELINE, 7)
    first = heard(pipeline)
    with belvedere.open(path) as db:
        for seed in range(3, 7):
            for writer in writers:
                for _ in range(10):
                    said[writer.pid] = int(heard(writer)) + 1
            last = heard(pipeline)
            check_totals(db)
            victim = chance.choice(list(writers))
            writers.pop(victim)
            said[victim.pid] += len(kill(victim))
            check_totals(db)
            writers[start(WRITER, seed)] = 0
            if seed % 2:
                kill(pipeline)
                check_totals(db)
                pipeline = start(PIPELINE, 7 * seed)
                heard(pipeline)
            check_totals(db)
        assert int(last) > int(first)
        for writer in writers:
            said[writer.pid] = said.get(writer.pid, 0) + len(kill(writer))
        kill(pipeline)
        check_totals(db)
        db._runner = LocalRunner(db.store)
        db.catch_up()
        made = [row["writer"] for row in db.table("moves").scan()]
        check_totals(db)
        # what was acknowledged is there, and at most the one move that was under way beside it
        for writer_id, count in said.items():
            assert count <= made.count(writer_id) <= count + 1
        assert any(row["balance"] != BALANCE for table in TABLES for row in db.table(table).scan())
