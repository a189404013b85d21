"""A long random test on a real HBase and a standalone Spark cluster.

python -m tests.hbase.soak --minutes 30 [--seed S] [--directory D]

Writers write three tables, `belvedere run` keeps ten views, and processes are killed and regions
moved meanwhile. Every round the writers pause, the views catch up, and each must be what DuckDB
computes from a scan of the tables; `verify` recomputes some of them too. The faults are drawn from
the seed; what they meet depends on the machine. Exits with 1 at the first round in which something
is wrong, and leaves the directory.

`--faults "driver, master"` does these in turn instead of drawing, in one round.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import belvedere
from belvedere.database import Database
from belvedere.errors import BelvedereError
from belvedere.stores.hbase.local import Cluster
from belvedere.waiting import wait_until
from tests.hbase.soak_driver import Driver
from tests.hbase.soak_faults import WEIGHTS, Faults
from tests.hbase.soak_tables import VIEWS, computed, create_tables, declare, differences, kept
from tests.hbase.spark_cluster import SparkCluster
from tests.hbase.users import User

NAMESPACE = "soak"
# Markers of deletes outlive a round, in which clients write backwards in time (decision 20).
SETTINGS = {"hbase.hstore.time.to.purge.deletes": "600000"}
_CATCH_UP = 300.0  # seconds
_VERIFIED = 2  # views of each round
_NEVER = threading.Event()


class Writer:
    """The process of the writers."""

    def __init__(self, directory: Path, seed: int) -> None:
        command = [sys.executable, "-m", "tests.hbase.soak_writer", str(directory), str(seed)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, command: str) -> int:
        """Returns how many operations were acknowledged so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def write(self) -> None:
        self.tell(f"write {int(time.time() * 1000)}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Soak:
    """All processes, in one directory; they end with the block."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory, self.seed, self.dice = directory, seed, random.Random(seed)
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as ending:
            cluster = Cluster(self.directory / "hbase", SETTINGS)
            cluster.up()
            ending.callback(cluster.down)
            spark = SparkCluster(self.directory / "spark")
            ending.callback(spark.close)
            self.user = User(cluster)
            create_tables(self.user)
            self.writer = Writer(cluster.directory, self.seed)
            ending.callback(self.writer.close)
            self.writer.write()  # tables are adopted while they change
            url = cluster.url(NAMESPACE) + "&grace=2"
            self.db: Database = belvedere.open(url, slots=4, master="local[1]")
            ending.callback(self.db.close)
            declare(self.db)
            self.driver = Driver(url, spark.url, self.directory / "driver.log")
            ending.callback(self.driver.stop)
            self.faults = Faults(cluster, spark, self.driver, self.user, NAMESPACE, self.dice)
            self._ending = ending.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.faults.resume(all_of_them=True)
        self._ending.close()

    def disturb(self, seconds: float) -> list[str]:
        """Faults by chance, a few seconds apart; that one cannot be done is nothing to tell."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.faults.draw()
            self._let_pass(self.dice.uniform(1, 6))
        return []

    def disturb_with(self, names: list[str]) -> list[str]:
        """Faults one after the other; returns those that could not be done."""
        failed = []
        for name in names:
            if not self._do_when_possible(name):
                failed.append(f"{name} could not be done")
            self._let_pass(5)
        return failed

    def _do_when_possible(self, name: str) -> bool:
        """An executor may not be there yet."""
        deadline = time.monotonic() + 60
        while not self.faults.do(name):
            if time.monotonic() > deadline:
                return False
            self._let_pass(0.5)
        return True

    def _let_pass(self, seconds: float) -> None:
        """The writers write and the views follow."""
        _NEVER.wait(seconds)
        self.faults.resume()

    def check(self, verified: list[str]) -> list[str]:
        """What is wrong when the views have caught up; the writers pause meanwhile."""
        self.faults.resume(all_of_them=True)
        try:
            if wait_until(self._all_live, _CATCH_UP) is None:
                return [f"after {_CATCH_UP:g} s not all views are live", self.driver.last_words()]
            with self.db.session(timeout=_CATCH_UP) as session:
                session.wrote()
                found = kept(session)
            wrong = differences(computed(self.user), found)
            checks = [self.db.verify(name) for name in verified]
        except BelvedereError as error:
            return [f"{type(error).__name__}: {error}", self.driver.last_words()]
        return wrong + [f"verify of {each.view}: {each}" for each in checks if not each.ok]

    def _all_live(self) -> bool | None:
        """Faults of the first round meet tables that are adopted and views that are loaded."""
        return None if self.db.status().unbuilt else True


def summary(soak: Soak) -> str:
    """How often each fault was done so far."""
    done = ", ".join(f"{name} {count}" for name, count in sorted(soak.faults.counts.items()))
    return f"so far: {done}; the driver ended by itself {soak.driver.ended} times"


def round_of(soak: Soak, number: int, seconds: float, names: list[str]) -> list[str]:
    """One round, which prints a line; returns what is wrong."""
    began = time.monotonic()
    wrong = soak.disturb_with(names) if names else soak.disturb(seconds)
    written = soak.writer.tell("pause")
    paused = time.monotonic()
    turn = [list(VIEWS)[(number * _VERIFIED + i) % len(VIEWS)] for i in range(_VERIFIED)]
    wrong += soak.check(turn)
    print(
        f"round {number}: {'WRONG' if wrong else 'right'}, {written:,} operations, epoch"
        f" {soak.db.committed()[0]}, {paused - began:.0f} s of faults, checked in"
        f" {time.monotonic() - paused:.0f} s; {summary(soak)}",
        flush=True,
    )
    return wrong


def run(directory: Path, seed: int, minutes: float, seconds: float, names: list[str]) -> list[str]:
    """What is wrong; empty if nothing is."""
    with Soak(directory, seed) as soak:
        deadline = time.monotonic() + 60 * minutes
        number = 0
        while True:
            number += 1
            wrong = round_of(soak, number, seconds, names)
            if wrong or names or time.monotonic() > deadline:
                wrong = wrong or soak.check(list(VIEWS))
                print(f"{number} rounds, {'WRONG' if wrong else 'all right'}; {summary(soak)}")
                return wrong
            soak.writer.write()


def main() -> int:
    parser = argparse.ArgumentParser(description="A long random test on HBase and Spark.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--round", type=float, default=45, help="seconds of faults in a round")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--directory", type=Path, help="default: a temporary one")
    parser.add_argument("--faults", default="", help=f"these only, in turn: {', '.join(WEIGHTS)}")
    given = parser.parse_args()
    directory = given.directory or Path(tempfile.mkdtemp(prefix="belvedere-soak-"))
    names = [name.strip() for name in given.faults.split(",") if name.strip()]
    if unknown := sorted(set(names) - set(WEIGHTS)):
        parser.error(f"there is no fault {', '.join(unknown)}: there are {', '.join(WEIGHTS)}")
    print(f"seed {given.seed}, in {directory}", flush=True)
    wrong = run(directory, given.seed, given.minutes, given.round, names)
    for line in wrong:
        print(line)
    if wrong:
        print(f"seed {given.seed} found this; what was there is in {directory}")
        return 1
    if given.directory is None:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
