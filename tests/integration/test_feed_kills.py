"""A producer and a consumer of a feed, real processes, killed at any moment: the consumer has every
change exactly once.

Who kills does so after so many lines of a child's output: nothing waits for time to pass.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import belvedere
from belvedere.epochs.local import LocalRunner

PRODUCER = """
import random, sys
import belvedere
from belvedere.epochs.local import LocalRunner
db = belvedere.open(sys.argv[1])
db._runner = LocalRunner(db.store)
rng = random.Random(int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    rows = [{"id": rng.randrange(60), "a": rng.randrange(5)} for _ in range(rng.randrange(1, 9))]
    db.table("t").put_many(rows)
    db.table("t").delete(rng.randrange(60))
    db.catch_up()
    print(number, flush=True)
"""
# its state is a file that is replaced as a whole: the sum, and the epoch that it contains
CONSUMER = """
import json, os, sys
import belvedere
from collections import Counter
db, place = belvedere.open(sys.argv[1]), sys.argv[2]
epoch, total = 0, Counter()
if os.path.exists(place):
    epoch, pairs = json.load(open(place))
    total = Counter({tuple(row): weight for row, weight in pairs})
with db.view("v").changes(since=epoch, consumer="c") as feed:
    for table in feed:
        for *row, _, weight in zip(*(c.to_pylist() for c in table.columns), strict=True):
            total[tuple(row)] += weight
        left = [[row, weight] for row, weight in total.items() if weight]
        with open(place + ".new", "w") as file:
            json.dump([feed.epoch, left], file)
        os.replace(place + ".new", place)
        feed.acknowledge()
        print(feed.epoch, flush=True)
"""


def _run(code: str, *arguments: str, lines: int | None) -> None:
    """Run a child to its end, or kill it after so many lines."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for number, _ in enumerate(child.stdout):
            if number == lines:
                child.kill()
                break
    assert lines is not None or child.returncode == 0


@pytest.mark.parametrize("level", ["strong", "complete"])
def test_a_consumer_has_every_change_once_whoever_is_killed(tmp_path: Path, level: str) -> None:
    path, place = str(tmp_path / "shop"), str(tmp_path / "sum.json")
    with belvedere.open(path) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
        db.sql(
            f"CREATE MATERIALIZED VIEW v WITH (consistency = '{level}') AS"
            " SELECT a, count(*) AS n, max(id) FROM t GROUP BY a"
        )
        db.catch_up()
    rng = random.Random(3)
    for turn in range(4):
        _run(PRODUCER, path, str(turn), "12", lines=rng.randrange(12))
        _run(CONSUMER, path, place, lines=rng.randrange(4))
    with belvedere.open(path) as db:
        db._runner = LocalRunner(db.store)
        db.catch_up()
        _run(CONSUMER, path, place, lines=None)
        epoch, pairs = json.loads(Path(place).read_text())
        assert epoch <= db.status().epoch
        shown = Counter(tuple(row.values()) for row in db.view("v").to_arrow().to_pylist())
        assert {tuple(row): weight for row, weight in pairs} == shown
