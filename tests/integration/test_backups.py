"""Backups beside writers and a pipeline, restored elsewhere; and kills in the middle of them.

BELVEDERE_BACKUPS sets how many are taken.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.waiting import wait_until
from tests.integration import shop
from tests.integration.test_kills import kill_group, start

ROOT = Path(__file__).parents[2]
WRITER = """
import sys, belvedere
from belvedere.waiting import wait_until
from tests.integration import shop
db = belvedere.open(sys.argv[1])
orders = db.table("orders")
for seed in range(1_000_000):
    orders.put_many(shop.rows(500, seed))
    wait_until(lambda: db.status().lag_operations < 10_000 or None, None)
"""
BACKUPS = int(os.environ.get("BELVEDERE_BACKUPS", "3"))


def command(*arguments: str | Path) -> subprocess.Popen[str]:
    """The command line, as a process of its own."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    }
    return subprocess.Popen(
        [sys.executable, "-c", "from belvedere.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def ran(*arguments: str | Path) -> str:
    process = command(*arguments)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
def test_backups_beside_a_writer_and_a_pipeline_have_right_views(
    tmp_path: Path, spark: SparkSession
) -> None:
    epochs = set()
    with belvedere.open(tmp_path / "shop", spark=spark) as db:
        db.sql(shop.TABLE)
        shop.create(db)
        db.catch_up()
        writer = start(WRITER, tmp_path / "shop")
        pipeline = db.start()
        try:
            for number in range(BACKUPS):
                await_epochs(db, 2)
                if number % 3 == 2:
                    db.sql("CREATE OR REPLACE MATERIALIZED VIEW big AS SELECT id FROM orders")
                source, target = tmp_path / f"b{number}", tmp_path / f"r{number}"
                if number % 2:
                    db.backup(source)
                else:
                    ran("--db", tmp_path / "shop", "backup", source)
                ran("restore", source, target)
                epochs.add(check_restored(target, spark))
            assert pipeline.status.is_active
        finally:
            kill_group(writer)
        db.catch_up(timeout=300)
        pipeline.stop()
        shop.check(db)
    assert len(epochs) == BACKUPS  # each of another moment


def await_epochs(db: belvedere.Database, count: int) -> None:
    wanted = db.status().epoch + count
    assert wait_until(lambda: db.status().epoch >= wanted or None, 120)


def check_restored(path: Path, spark: SparkSession) -> int:
    """Every view verified as of the backup's epoch, and again after the restored database went on
    by itself.
    """
    with belvedere.open(path, spark=spark) as db:
        status = db.status()
        assert not status.coordinator
        assert status.written % 500 == 0  # whole transactions of the writer
        live = [view.name for view in status.views if view.state == "live"]
        assert set(shop.VIEWS) <= set(live)
        for name in live:
            found = db.verify(name)
            assert found.ok, (name, found.counts)
        db.table("orders").put({"id": "new", "region": "emea", "status": "paid", "amount": 1})
        db.catch_up(timeout=300)
        shop.check(db)
        return status.epoch


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["backup", "restore", "compact"])
def test_a_kill_at_any_step_leaves_the_store_and_no_half_one(tmp_path: Path, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.backup_kills", str(tmp_path), kind],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    verdicts = [line.rpartition(" -> ")[2] for line in done.stdout.splitlines()]
    assert len(verdicts) > 20
    whole = verdicts.count("whole")
    refused = verdicts.count("refused")
    assert whole + refused == len(verdicts)
    # only what is killed after its last step is whole; a store that is compacted always is
    assert whole == (len(verdicts) if kind == "compact" else 1)


def killed_in_the_middle(shop: Path, target: Path) -> None:
    """Kill a backup as soon as it has begun; one that was faster is made again."""
    for _ in range(20):
        process = command("--db", shop, "backup", target)
        assert wait_until(lambda: target.exists() or None, 60)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        if not (target / "backup.json").exists():
            return
        shutil.rmtree(target)
    pytest.fail("no kill fell into a backup")


def test_a_killed_command_leaves_a_directory_that_is_refused(tmp_path: Path) -> None:
    """A signal from outside, while the command is at work."""
    with belvedere.open(tmp_path / "shop", slots=2) as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v STRING)")
        rows = [{"id": i, "v": "x" * 1000} for i in range(60_000)]
        db.table("t").put_many(rows)
        killed_in_the_middle(tmp_path / "shop", tmp_path / "b")
        refused = command("restore", tmp_path / "b", tmp_path / "r")
        _, err = refused.communicate(timeout=60)
        assert (refused.returncode, "was interrupted" in " ".join(err.split())) == (1, True)
        refused = command("--db", tmp_path / "b", "status")
        _, err = refused.communicate(timeout=60)
        assert (refused.returncode, "a backup that was interrupted" in " ".join(err.split())) == (
            1,
            True,
        )
        ran("--db", tmp_path / "shop", "backup", tmp_path / "b2")
        ran("restore", tmp_path / "b2", tmp_path / "r2")
    with belvedere.open(tmp_path / "r2") as restored:
        assert restored.table("t").to_arrow().num_rows == 60_000
