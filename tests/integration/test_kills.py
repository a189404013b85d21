"""Real processes, real signals: workers, drivers and writers that are killed lose nothing and count
nothing twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.waiting import wait_until
from tests.integration import shop

DRIVER = """
import sys, belvedere
db = belvedere.open(sys.argv[1], master="local[2]")
pipeline = db.start(max_rows=2000)
print("started", flush=True)
sys.stdin.readline()
"""
WRITER = """
import sys, belvedere
from tests.integration import shop
db = belvedere.open(sys.argv[1])
orders = db.table("orders")
for seed in range(1_000_000):
    orders.put_many(shop.rows(500, seed))
    print(seed, flush=True)
"""


def start(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """A process in a group of its own, so that Spark's JVM and workers can be killed with it."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )


def kill_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()


def kill_session(process: subprocess.Popen[str]) -> None:
    """Also what has left its group, but not its session: the daemon of Spark's Python workers."""
    assert wait_until(lambda: _kill_members(process.pid), 60)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()


def _kill_members(session: int) -> bool | None:
    """True when none is left; one that was killed may have started another before."""
    alive = [found.pid for found in processes() if found.session == session]
    for pid in alive:
        with suppress(ProcessLookupError):  # it has ended by itself, since its parent has
            os.kill(pid, signal.SIGKILL)
    return None if alive else True


def open_epoch(db: belvedere.Database) -> int | None:
    found = db.store.catalog.get_one("intent")
    return json.loads(found)["epoch"] if found else None


class Found(NamedTuple):
    pid: int
    parent: int
    session: int
    command: bytes


def processes() -> Iterator[Found]:
    """All of this machine that have not ended."""
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        state, parent, _, session = stat.rsplit(")", 1)[1].split()[:4]
        if state not in "ZX":
            yield Found(pid, int(parent), int(session), command)


def workers() -> list[int]:
    """Python workers of this process's Spark: below it, the children of its daemon. Other test
    processes have daemons of their own, whose workers are theirs to kill.
    """
    running = list(processes())
    parents = {found.pid: found.parent for found in running}
    daemons = {found.pid for found in running if b"pyspark.daemon" in found.command}
    return [
        pid for pid in daemons if parents[pid] in daemons and os.getpid() in above(pid, parents)
    ]


def above(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid := parents.get(pid, 0):
        yield pid


def test_a_python_worker_killed_in_the_middle_of_an_epoch_is_survived(
    db: belvedere.Database,
) -> None:
    db.sql(shop.TABLE)
    shop.create(db)
    db.catch_up()
    orders = db.table("orders")
    pipeline = db.start(max_rows=20_000)
    hit = 0
    for seed in range(8):
        for part in range(5):
            orders.put_many(shop.rows(4000, 10 * seed + part))
        epoch = wait_until(lambda: open_epoch(db), 60)
        for pid in workers():
            os.kill(pid, signal.SIGKILL)
        hit += open_epoch(db) == epoch  # the epoch was still open after the kill
        if hit >= 2:
            break
    db.catch_up(timeout=120)
    pipeline.stop()
    assert hit, "no kill fell into an epoch"
    assert sum(m["operations"] for m in db.status().epochs) == db.status().written
    shop.check(db)


def test_a_driver_killed_in_the_middle_of_an_epoch_is_followed_by_another(
    tmp_path: Path, spark: SparkSession
) -> None:
    with belvedere.open(tmp_path / "shop", spark=spark) as db:
        db.sql(shop.TABLE)
        shop.create(db)
        db.catch_up()
        for seed in range(12):
            db.table("orders").put_many(shop.rows(2000, seed))
        driver = start(DRIVER, tmp_path / "shop")
        assert driver.stdout is not None
        assert driver.stdout.readline() == "started\n"
        begun = wait_until(lambda: epoch if (epoch := open_epoch(db)) and epoch > 3 else None, 90)
        kill_group(driver)
        assert begun is not None
        left = open_epoch(db)
        db.catch_up(timeout=120)
        epochs = [m["epoch"] for m in db.status().epochs]
        assert epochs == sorted(set(epochs))
        assert left is None or left in epochs
        assert sum(m["operations"] for m in db.status().epochs) == db.status().written
        shop.check(db)


@pytest.mark.parametrize("kills", [3])
def test_a_writer_killed_in_the_middle_of_a_put_leaves_whole_transactions(
    tmp_path: Path, spark: SparkSession, kills: int
) -> None:
    with belvedere.open(tmp_path / "shop", spark=spark) as db:
        db.sql(shop.TABLE)
        shop.create(db)
        acknowledged = 0
        for _ in range(kills):
            writer = start(WRITER, tmp_path / "shop")
            assert writer.stdout is not None
            for _ in range(4):
                assert writer.stdout.readline()
                acknowledged += 1
            kill_group(writer)
        written = db.status().written
        assert written % 500 == 0
        assert written >= acknowledged * 500
        db.table("orders").put({"id": "after", "region": "emea", "status": "paid", "amount": 1})
        db.catch_up(timeout=120)
        shop.check(db)
