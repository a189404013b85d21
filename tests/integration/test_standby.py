"""Two `belvedere run` of one database: the second stands by, and takes over from the first when it
is killed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import belvedere
from belvedere.epochs.lease import LEASE_SECONDS
from belvedere.waiting import wait_until
from tests.integration.test_kills import kill_session

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@contextmanager
def pipeline(path: Path) -> Iterator[subprocess.Popen[str]]:
    """`belvedere run` in a session of its own, which is killed at the end, Spark included."""
    code = "from belvedere.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--db", str(path), "run", "--master", "local[1]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    try:
        yield process
    finally:
        kill_session(process)


def line(process: subprocess.Popen[str], what: str) -> str:
    """The next line that says so."""
    assert process.stdout is not None
    found = next((text for text in process.stdout if what in text), None)
    assert found is not None, f"the pipeline ended before it said {what!r}"
    return found


def test_a_second_pipeline_takes_over_at_once_when_the_first_is_killed(tmp_path: Path) -> None:
    """Although nobody has asked yet how the killed one ended, so that the system still lists it."""
    path = tmp_path / "d"
    with ExitStack() as stack:
        db = stack.enter_context(belvedere.open(path))
        db.sql("CREATE TABLE o (id INT, v BIGINT, PRIMARY KEY (id))")
        db.sql("CREATE MATERIALIZED VIEW s AS SELECT sum(v) AS t FROM o")
        first = stack.enter_context(pipeline(path))
        line(first, "up to date")
        second = stack.enter_context(pipeline(path))
        assert f"pid {first.pid} ends" in line(second, "standing by")
        os.kill(first.pid, signal.SIGKILL)
        taken = line(second, "took over")
        assert f"pid {first.pid}, which died" in taken
        seconds = re.search(r"([0-9.]+) s without a pipeline", taken)
        assert seconds is not None
        assert float(seconds[1]) < LEASE_SECONDS / 2  # it did not wait for the lease to end
        db.table("o").put({"id": 1, "v": 7})
        assert wait_until(lambda: db.view("s").get() == {"t": 7} or None, 90)
        assert f"pid {second.pid}" in db.status().coordinator
        print(taken)
