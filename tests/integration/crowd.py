"""A process of a crowd on one database: `python crowd.py PATH ROLE NAME SEED`. It tells what it tries
and what was acknowledged, and goes on until somebody ends it.
"""

from __future__ import annotations

import random
import sys

import belvedere
from belvedere.catalog.state import read_head
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import LeaseLost, RowConflict, Stale
from belvedere.stores.embedded import base_tables, log_file, run_files, settling, shard

ACCOUNTS = 8


def opened(path: str) -> Database:
    db = belvedere.open(path, slots=2)
    db._runner = LocalRunner(db.store)
    return db


def make_small() -> None:
    """Segments, settling, runs in files: all with few rows."""
    log_file.FULL, log_file._AHEAD = 20_000, 4096
    settling.FEW = 20
    for module in (settling, shard):
        vars(module)["SMALL_BYTES"] = 2000
    run_files.OWN_FILE = 10_000
    base_tables.MOST_WAITING, base_tables._LOOK_AFTER = 3000, 500


def put(db: Database, name: str, number: int, dice: random.Random) -> None:
    first, count = dice.randrange(40) * 200, dice.choice([1, 1, 1, 30, 200])
    ids = [f"{name}-{first + i}" for i in range(count)]
    print("try", number, *ids, flush=True)
    rows = [{"id": each, "v": number} for each in ids]
    db.table("t").put(rows[0]) if count == 1 else db.table("t").put_many(rows)
    print("done", number, *ids, flush=True)


def move(db: Database, dice: random.Random) -> None:
    """An amount from one account to another one."""
    one, other = dice.sample(range(ACCOUNTS), 2)
    try:
        with db.transaction() as transaction:
            accounts = transaction.table("accounts")
            for number, amount in ((one, -1), (other, 1)):
                row = accounts.get(number)
                assert row is not None
                accounts.put({"id": number, "v": row["v"] + amount})
    except RowConflict:
        return
    print("moved", flush=True)


def maintain(db: Database) -> None:
    """Also trims, as far as views are."""
    try:
        db.catch_up()
        db.store.base.trim("log", db.store.catalog.read(read_head).vector["log"])
    except (LeaseLost, Stale) as error:  # it was stopped, and others have gone on
        print("late", type(error).__name__, flush=True)
    print("maintained", flush=True)


def main() -> None:
    path, role, name, seed = sys.argv[1:]
    make_small()
    dice, db, number = random.Random(seed), opened(path), 0
    while True:
        number += 1
        if role == "writer":
            put(db, name, number, dice)
        elif role == "mover":
            move(db, dice)
        else:
            maintain(db)


if __name__ == "__main__":
    main()
