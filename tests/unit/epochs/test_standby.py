"""Pipelines that stand by, in processes of their own: whoever had the lease, and however it ended,
the next one has it at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import belvedere
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.lease import LEASE_SECONDS
from belvedere.epochs.local import LocalRunner
from belvedere.processes import start_time
from belvedere.waiting import wait_until

PIPELINE = """
import sys
import belvedere
from belvedere.epochs.handle import AWAITING_LEASE
from belvedere.epochs.local import LocalRunner
from belvedere.waiting import wait_until
db = belvedere.open(sys.argv[1])
db._runner = LocalRunner(db.store)
pipeline = db.start()
wait_until(lambda: pipeline.status.message != "starting" or None, None)
if pipeline.status.message == AWAITING_LEASE:
    print("stands by", flush=True)
    found = wait_until(lambda: pipeline.takeover, None)
    print("took over", found.holder.split()[-1], found.has_died, found.seconds, flush=True)
else:
    print("leads", flush=True)
sys.stdin.readline()
db.close()
"""


@contextmanager
def pipeline(path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PIPELINE, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


@pytest.mark.parametrize("how", ["killed", "killed and not waited for", "ended"])
def test_who_stands_by_takes_over_at_once(tmp_path: Path, how: str) -> None:
    path = tmp_path / "d"
    with ExitStack() as stack:
        db = stack.enter_context(belvedere.open(path))
        db.sql("CREATE TABLE o (id INT, v BIGINT, PRIMARY KEY (id))")
        db.sql("CREATE MATERIALIZED VIEW s AS SELECT sum(v) AS t FROM o")
        first = stack.enter_context(pipeline(path))
        assert said(first) == ["leads"]
        second = stack.enter_context(pipeline(path))
        assert said(second) == ["stands", "by"]
        if how == "ended":
            first.communicate("\n")
        else:
            first.kill()
        if how == "killed":
            first.wait()
        *words, pid, has_died, seconds = said(second)
        assert (words, pid, has_died) == (["took", "over"], str(first.pid), str(how != "ended"))
        assert float(seconds) < LEASE_SECONDS / 2  # it did not wait until the lease was over
        db.table("o").put({"id": 1, "v": 7})
        assert wait_until(lambda: db.view("s").get() == {"t": 7} or None, 60)


def test_a_process_that_nobody_has_waited_for_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert start_time(child.pid)
        child.kill()
        assert wait_until(lambda: not start_time(child.pid) or None, 60)
        assert Path(f"/proc/{child.pid}").exists()  # the system still lists it


def test_a_pipeline_without_work_keeps_its_lease() -> None:
    now = [1000.0]
    with belvedere.open("memory:") as db:
        first, second = (
            Coordinator(db.store, LocalRunner(db.store), now=lambda: now[0]) for _ in range(2)
        )
        assert first.acquire()
        for _ in range(10):
            now[0] += LEASE_SECONDS * 0.7
            assert first.step() is None
            assert not second.acquire()
        now[0] += LEASE_SECONDS + 1  # it stands still
        assert second.acquire()
