"""A small database, and directories in which one file of it is flipped, cut, older, missing or
empty.

    python -m tests.integration.damages FOLDER FIRST LAST

judges the cases with these numbers and says a line for each: what was done, and `right`, `refused`
with the errors, or what is wrong. The database is made in FOLDER when it is not there.
"""

from __future__ import annotations

import pickle
import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import BelvedereError
from belvedere.stores.embedded import files, trees

SLOTS, EPOCHS, ROWS = 2, 6, 500
OLDER = (2, 4)  # epochs after which the directory is copied
TABLES = ("orders", "regions")
VIEWS = {
    "totals": "SELECT region, count(*) AS n, sum(amount) AS total, min(amount) AS least"
    " FROM orders GROUP BY region",
    "named": "SELECT o.id, o.amount, o.note, r.name FROM orders o LEFT JOIN regions r"
    " ON o.region = r.id",
    "largest": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 5",
    "kinds": "SELECT DISTINCT amount % 7 AS kind FROM orders",
    "notes": "SELECT note FROM orders WHERE amount > 50",
    "rich": "SELECT region, total FROM totals WHERE total > 100",
}
KINDS = ("flip", "flip", "flip", "flip", "flip", "cut", "older", "missing", "empty")
Answers = dict[str, Any]


@dataclass(frozen=True)
class Made:
    """The database, copies of earlier, and what is right: now, and when views have caught up."""

    folder: Path
    now: Answers
    then: Answers

    @property
    def db(self) -> Path:
        return self.folder / "db"


def make(folder: Path) -> Made:
    """The database in a folder, made if it is not there."""
    known = folder / "right.pickle"
    if not known.exists():
        with opened(folder / "db", slots=SLOTS) as db:
            _define(db)
            for number in range(1, EPOCHS + 1):
                _change(db, number)
                db.catch_up()
                if number in OLDER:
                    shutil.copytree(folder / "db", folder / f"after-{number}")
            _change(db, EPOCHS + 1)
        shutil.copytree(folder / "db", folder / "then")
        with opened(folder / "db") as db, opened(folder / "then") as later:
            later.catch_up()
            known.write_bytes(pickle.dumps((answers(db), answers(later))))
        assert list((folder / "db").rglob("*.run"))
    return Made(folder, *pickle.loads(known.read_bytes()))


def opened(path: Path, **options: Any) -> Database:
    db = belvedere.open(path, **options)
    db._runner = LocalRunner(db.store)
    return db


def _define(db: Database) -> None:
    db.sql(
        "CREATE TABLE orders (id STRING, region STRING, amount INT, note STRING, PRIMARY KEY (id))"
    )
    db.sql(
        "CREATE TABLE regions (id STRING, name STRING, PRIMARY KEY (id))"
        " WITH (before_images = false)"
    )
    for name, select in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {select}")


def _change(db: Database, number: int) -> None:
    rows = [
        {
            "id": f"o{i}",
            "region": f"r{(i + number) % 5}",
            "amount": i * 37 % 101 + number,
            "note": f"note {i % 90} of an order",
        }
        for i in range(number % 3, ROWS, number)
    ]
    db.table("orders").put_many(rows)
    db.table("orders").delete_many([f"o{i}" for i in range(number, 60, 5)])
    db.table("regions").put({"id": f"r{number}", "name": f"name {number}"})


# ---------------------------------------------------------------- reading


def reads(db: Database) -> dict[str, Callable[[], Any]]:
    """Everything that can be asked."""
    found: dict[str, Callable[[], Any]] = {}
    for name in TABLES:
        found[f"scan {name}"] = partial(_scan_table, db, name)
    for name in VIEWS:
        found[f"scan {name}"] = partial(_scan_view, db, name)
    found["get orders"] = lambda: [db.table("orders").get(f"o{i}") for i in range(0, ROWS, 9)]
    found["get totals"] = lambda: [db.view("totals").get(f"r{i}") for i in range(6)]
    found["get named"] = lambda: [db.view("named").get(f"o{i}") for i in range(0, ROWS, 9)]
    found["get rich"] = lambda: [db.view("rich").get(f"r{i}") for i in range(6)]
    found["select"] = lambda: (
        db.sql("SELECT n.id, t.total FROM named n JOIN rich t ON n.name = t.region").to_pylist(),
        db.sql("SELECT region, sum(total) AS s FROM totals GROUP BY region ORDER BY 1").to_pylist(),
    )
    return found


def _scan_table(db: Database, name: str) -> list[dict[str, Any]]:
    return list(db.table(name).scan())


def _scan_view(db: Database, name: str) -> list[str]:
    """Bags have no order."""
    return sorted(map(repr, db.view(name).scan()))


def answers(db: Database) -> Answers:
    return {name: read() for name, read in reads(db).items()}


# ---------------------------------------------------------------- damaging


def damage(made: Made, target: Path, chance: random.Random) -> str:
    """Make `target` a copy of the database with one damaged file; returns what was done."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(made.db, target)
    names = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    weights = [15 if "data" in name else 3 if name.endswith(".run") else 1 for name in names]
    name, kind = chance.choices(names, weights)[0], chance.choice(KINDS)
    return f"{kind} {name}{_DAMAGES[kind](made, target / name, name, chance)}"


def _flip(made: Made, path: Path, name: str, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    if not data:
        return " (empty)"
    at = _place(path, chance) if name.endswith("data.mdb") else chance.randrange(len(data))
    data[at] ^= 1 << chance.randrange(8) if chance.random() < 0.7 else chance.randrange(1, 256)
    path.write_bytes(data)
    return f" at {at}"


def _place(path: Path, chance: random.Random) -> int:
    """Mostly in a page that is in use, and often where LMDB keeps what holds it together."""
    pages = list(range(path.stat().st_size // 4096))
    with path.open("rb") as file:
        meta, used = files.newest_meta(file), dict[int, int]()
        assert meta is not None
        for root in (meta.main, meta.free):
            tree = trees.Tree(file.fileno(), meta, root, print, used, numbers=root is meta.free)
            assert len(list(tree.read())) == root.entries
    in_use = [0, 1, *used]
    page = 4096 * chance.choice(in_use if chance.random() < 0.8 else pages)
    return page + chance.choice(
        [chance.randrange(4096), chance.randrange(16), chance.randrange(200)]
    )


def _cut(made: Made, path: Path, name: str, chance: random.Random) -> str:
    size = path.stat().st_size
    left = chance.choice([size // 2, size - 1, size - 4096, chance.randrange(size + 1)])
    with path.open("r+b") as file:
        file.truncate(max(left, 0))
    return f" to {left} of {size}"


def _older(made: Made, path: Path, name: str, chance: random.Random) -> str:
    source = made.folder / f"after-{chance.choice(OLDER)}"
    if not (source / name).exists():
        path.unlink()
        return " (not there then)"
    shutil.copy(source / name, path)
    return f", {source.name}"


def _missing(made: Made, path: Path, name: str, chance: random.Random) -> str:
    path.unlink()
    return ""


def _empty(made: Made, path: Path, name: str, chance: random.Random) -> str:
    path.write_bytes(b"")
    return ""


_DAMAGES = {"flip": _flip, "cut": _cut, "older": _older, "missing": _missing, "empty": _empty}


# ---------------------------------------------------------------- judging


def judge(made: Made, target: Path) -> str:
    """`right`, `refused: ...`, or what is wrong."""
    try:
        db = opened(target)
    except BelvedereError as error:
        return f"refused: {error}"
    refused: list[str] = []
    with db:
        wrong = _compare(db, made.now, refused)
        try:
            db.catch_up(timeout=60)
        except BelvedereError as error:
            refused.append(f"catch up: {error}")
        else:
            wrong += _compare(db, made.then, refused)
    if wrong:
        return f"WRONG: {'; '.join(wrong)}"
    return f"refused: {' | '.join(refused)}" if refused else "right"


def _compare(db: Database, right: Answers, refused: list[str]) -> list[str]:
    wrong = []
    for name, read in reads(db).items():
        try:
            if read() != right[name]:
                wrong.append(name)
        except BelvedereError as error:
            refused.append(f"{name}: {error}")
    return wrong


def main(folder: str, first: int, last: int) -> None:
    made = make(Path(folder))
    target = made.folder / f"case-{first}"
    for number in range(first, last):
        what = damage(made, target, random.Random(number))
        print(f"{number}: {what} -> ", end="", flush=True)  # so that a signal is seen to be its
        print(" ".join(judge(made, target).split()), flush=True)
    shutil.rmtree(target, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
