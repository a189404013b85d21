"""Flipped bytes in many values at once: whatever is raised says that the store is damaged, never in
the words of what happened to read them.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.errors import Damaged
from belvedere.stores.embedded import run_lists

PARTS = ("base/log", "catalog", "slots/000")
READER = """
import sys, belvedere
from belvedere.errors import BelvedereError
from belvedere.epochs.local import LocalRunner
try:
    db = belvedere.open(sys.argv[1])
except BelvedereError as error:
    print("open", error)
    sys.exit()
db._runner = LocalRunner(db.store)
calls = {
    "get": lambda: [db.table("t").get(i) for i in range(300)],
    "scan": lambda: list(db.table("t").scan()),
    "point": lambda: [db.view("w").get(f"name{i}") for i in range(20)],
    "view": lambda: list(db.view("w").scan()),
    "all": lambda: db.view("r").to_arrow().to_pylist(),
    "sql": lambda: db.sql("SELECT t.s, w.n FROM t JOIN w ON t.s = w.s").to_pylist(),
    "update": lambda: db.sql("UPDATE t SET d = 1 WHERE id < 50"),
    "put": lambda: db.table("t").put_many([{"id": i, "s": f"name{i % 20}", "d": 1.5} for i in range(0, 300, 5)]),
    "catch up": lambda: db.catch_up(timeout=30),
    "status": db.status,
    "explain": lambda: db.sql("EXPLAIN w"),
}
for name, call in calls.items():
    try:
        call()
    except BelvedereError as error:
        print(name, error)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "db"
    with belvedere.open(path, slots=1) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, s STRING, d DOUBLE)")
        db.sql(
            "CREATE MATERIALIZED VIEW w AS SELECT s, count(*) AS n, min(d) AS least FROM t GROUP"
            " BY s"
        )
        db.sql("CREATE MATERIALIZED VIEW r AS SELECT id, s FROM t WHERE d > 1")
        db.table("t").put_many([{"id": i, "s": f"name{i % 20}", "d": float(i)} for i in range(300)])
        db.catch_up()
        db.table("t").put_many(
            [{"id": i, "s": f"nome{i % 20}", "d": float(i)} for i in range(0, 300, 9)]
        )
    return path


def flip_values(part: Path, seed: random.Random, share: float) -> int:
    """Flip a bit in some of the values, through LMDB, so that its own pages stay good."""
    flipped = 0
    with (
        lmdb.open(str(part), map_size=1 << 26) as environment,
        environment.begin(write=True) as transaction,
    ):
        for key, value in list(transaction.cursor()):
            if value and seed.random() < share and key != b"\0\0\0\0mstore":
                at = seed.randrange(len(value))
                transaction.put(
                    key, value[:at] + bytes([value[at] ^ 1 << seed.randrange(8)]) + value[at + 1 :]
                )
                flipped += 1
    return flipped


def flip_bytes(folder: Path, seed: random.Random, share: float) -> int:
    """Flip a bit in some places of the log's files."""
    flipped = 0
    for path in sorted(folder.glob("*.log")):
        data = bytearray(path.read_bytes())
        used = len(data.rstrip(b"\0"))  # zeros are written ahead of records
        for _ in range(max(1, int(share * 10))):
            data[seed.randrange(used)] ^= 1 << seed.randrange(8)
            flipped += 1
        path.write_bytes(data)
    return flipped


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes_are_refused_in_our_words_or_are_values(
    whole: Path, tmp_path: Path, part: str, seed: int
) -> None:
    shutil.copytree(whole, tmp_path / "db")
    chance = random.Random(f"{part} {seed}")
    flip = flip_bytes if part == "base/log" else flip_values
    assert flip(tmp_path / "db" / part, chance, chance.choice([0.3, 1.0]))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-c", READER, str(tmp_path / "db")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_is_damaged_is_named(whole: Path, tmp_path: Path) -> None:
    """R4: a bare UnicodeDecodeError before."""
    shutil.copytree(whole, tmp_path / "db")
    for segment in (tmp_path / "db" / "base" / "log").glob("*.log"):
        data = segment.read_bytes()
        segment.write_bytes(data.replace(b"name", b"na\xffe").replace(b"nome", b"no\xffe"))
    said = r"\.log: the record of the log at position \d+ is not what was"
    with belvedere.open(tmp_path / "db") as db, pytest.raises(Damaged, match=said):
        db.table("t").get(0)
    shutil.copytree(whole, tmp_path / "other")
    slot = tmp_path / "other" / "slots" / "000"
    with lmdb.open(str(slot), map_size=1 << 26) as environment, environment.begin(write=True) as t:
        for key, value in list(t.cursor()):
            if key.startswith(run_lists.SECTION):
                t.put(key, value.replace(b"name", b"na\xffe"))
    with belvedere.open(tmp_path / "other") as db, pytest.raises(Damaged, match=r"^view r: small-"):
        db.view("r").to_arrow()
    pages = tmp_path / "other" / "catalog" / "data.mdb"
    pages.write_bytes(pages.read_bytes().replace(b'"schema"', b'"schemo"'))
    with pytest.raises(Damaged, match=r"catalog/data\.mdb: the entry table/\d is not what was"):
        belvedere.open(tmp_path / "other")
