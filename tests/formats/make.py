"""Makes the small database of the current format that is kept here, `format-N.tar.xz`.

python -m tests.formats.make FILE

Two tables, views of all kinds, and an epoch that was left open when one of its two tasks had
committed. Made once when a format is new; what it holds is the same in all formats.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import belvedere
from belvedere.database import Database
from belvedere.epochs.attempts import run_stage, stages
from belvedere.epochs.intent import Intent
from belvedere.epochs.intents import load_plan
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.manager import Ack

VIEWS = {
    "totals": "SELECT region, count(*) AS n, sum(amount) AS total, min(amount) AS least"
    " FROM orders GROUP BY region",
    "named": "SELECT o.id, o.amount, r.name FROM orders o LEFT JOIN regions r ON o.region = r.id",
    "largest": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 5",
    "kinds": "SELECT DISTINCT amount % 7 AS kind FROM orders",
    "unused": "SELECT id FROM regions EXCEPT SELECT region FROM orders",
}


class Crash(Exception):
    pass


class HalfRunner(LocalRunner):
    """Epochs in two tasks, of which the second does not come to its end."""

    def run(self, intent: Intent) -> list[Ack]:
        plan = load_plan(self.store, intent)
        run_stage(self.store, plan, stages(plan)[0], 2, 0, [])
        raise Crash


def change(db: Database, number: int) -> None:
    """What is written before an epoch."""
    rows = [
        {"id": f"o{i}", "region": f"r{(i + number) % 5}", "amount": i * 37 % 101 + number}
        for i in range(number, 40 * number, number)
    ]
    db.table("orders").put_many(rows)
    db.table("orders").delete_many([f"o{i}" for i in range(number, 60, 5)])
    db.table("regions").put({"id": f"r{number}", "name": f"name {number}"})


def fill(path: Path) -> None:
    with belvedere.open(path, slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE orders (id STRING, region STRING, amount INT, PRIMARY KEY (id))")
        db.sql("CREATE TABLE regions (id STRING, name STRING, PRIMARY KEY (id))")
        for name, select in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {select}")
        for number in range(1, 5):
            change(db, number)
            db.catch_up()
        change(db, 5)
        db._runner = HalfRunner(db.store)
        try:
            db.catch_up()
        except Crash:
            return
    raise AssertionError("the last epoch was not left open")


def main(file: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        fill(path)
        with tarfile.open(file, "w:xz") as archive:
            for part in sorted(path.rglob("*")):
                if part.is_file() and part.name not in ("lock.mdb", "holder"):
                    archive.add(part, str(part.relative_to(path)))


if __name__ == "__main__":
    main(sys.argv[1])
