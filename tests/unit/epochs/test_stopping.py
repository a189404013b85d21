"""A pipeline that was stopped is over: the process may end at once."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import belvedere
from belvedere.epochs.local import LocalRunner

SCRIPT = """
import sys
import belvedere
from belvedere.epochs.local import LocalRunner
db = belvedere.open(sys.argv[1], slots=2)
db._runner = LocalRunner(db.store)
db.sql("CREATE TABLE t (id INT PRIMARY KEY, x BIGINT)")
db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, x + 1 AS y FROM t")
pipeline = db.start()
for number in range(20):
    db.table("t").put({"id": number, "x": number})
db.catch_up()
pipeline.stop()
"""


def test_a_process_may_end_when_its_pipeline_has_stopped(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "shop")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_stop_returns_when_the_thread_is_over() -> None:
    with belvedere.open("memory:", slots=2) as db:
        db._runner = LocalRunner(db.store)
        before = threading.active_count()
        pipeline = db.start()
        pipeline.stop()
        assert threading.active_count() == before
