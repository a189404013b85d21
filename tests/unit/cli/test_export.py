"""Export: what is imported again is the same, a file is whole or not there, and one moment is what
it shows.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.waiting import wait_until
from tests.unit.cli.conftest import Cli

COLUMNS = """k STRING, n INT, b BOOLEAN, i INT, l BIGINT, x DOUBLE, m DECIMAL(38,10), s STRING, y BINARY, d DATE, t TIMESTAMP,
z STRING NOT NULL, PRIMARY KEY (k, n)"""
TEXTS = [
    "",
    " ",
    "NULL",
    "a,b",
    '"',
    '""',
    "é\u2028ß",
    "\n",
    "\r",
    "\r\n",
    "\0",
    "\ufeff",
    "\\N",
    "a\tb",
    "'",
    "0x",
    "  x  ",
    "x" * 300,
]
DOUBLES = [math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1]
DECIMALS = [
    Decimal(text)
    for text in (
        "0",
        "-1.5",
        "1e-10",
        "9999999999999999999999999999.9999999999",
        "-12345678901234567890.0123456789",
    )
]
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def random_row(r: random.Random, number: int) -> dict[str, Any]:
    def text() -> str:
        odd = "".join(
            chr(
                r.choice(
                    [r.randrange(32, 127), r.randrange(0xA0, 0xD7FF), r.randrange(0x10000, 0x1FFFF)]
                )
            )
            for _ in range(5)
        )
        return r.choice([odd, *TEXTS])

    values: dict[str, Any] = {
        "b": r.random() < 0.5,
        "i": r.choice([0, -1, 2**31 - 1, -(2**31), r.randrange(1000)]),
        "l": r.choice([2**63 - 1, -(2**63), r.randrange(10**9)]),
        "x": r.choice([*DOUBLES, r.gauss(0, 1e10)]),
        "m": r.choice([*DECIMALS, Decimal(r.randrange(10**20)) / 10**8]),
        "s": text(),
        "y": r.choice([b"", b"\0", b"\xff\xfe", r.randbytes(9)]),
        "d": r.choice(
            [
                date(1, 1, 1),
                date(9999, 12, 31),
                date(1970, 1, 1),
                date(2026, 1, 1) + timedelta(r.randrange(1000)),
            ]
        ),
        "t": r.choice(
            [
                datetime(1, 1, 1, tzinfo=UTC),
                LAST,
                datetime(2026, 2, 3, 4, 5, 6, r.randrange(10**6), tzinfo=UTC),
            ]
        ),
    }
    values = {name: None if r.random() < 0.2 else value for name, value in values.items()}
    return {"k": text()[:50], "n": number, **values, "z": text()}


def same(value: Any) -> Any:
    """NaN equals itself here, and -0.0 is not 0.0."""
    return (
        struct.pack("<d", math.nan if math.isnan(value) else value)
        if isinstance(value, float)
        else value
    )


def rows_of(path: Path, name: str) -> list[list[Any]]:
    with belvedere.open(path) as db:
        return [[same(v) for v in row.values()] for row in db.table(name).scan()]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "tsv"])
def test_what_is_exported_and_imported_again_is_the_same(
    cli: Cli, shop: Path, tmp_path: Path, ending: str, seed: int
) -> None:
    r = random.Random(f"{ending} {seed}")
    with belvedere.open(shop, slots=2) as db:
        db.sql(f"CREATE TABLE a ({COLUMNS}); CREATE TABLE b ({COLUMNS})")
        db.table("a").put_many([random_row(r, number) for number in range([0, 1, 300, 300][seed])])
    file = str(tmp_path / f"rows.{ending}")
    form = {
        "csv": ["--null", "<nothing>"],
        "tsv": ["--null", "<nothing>", "--delimiter", "\\t"],
    }.get(ending, [])
    done = cli("export", "a", file, *form)
    assert done.exit_code == 0, done.stderr
    done = cli("import", "b", file, *form)
    assert done.exit_code == 0, done.stderr
    assert rows_of(shop, "b") == rows_of(shop, "a")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            {"id": "a", "s": None},
            (
                "column s has a NULL, which an empty cell does not tell: give --null TEXT, to"
                " import too"
            ),
        ),
        (
            {"id": "", "s": "a"},
            "column id has the empty text, which an empty cell does not tell: give --null TEXT",
        ),
    ],
)
def test_what_an_empty_cell_does_not_tell_is_refused(
    cli: Cli, shop: Path, tmp_path: Path, row: dict[str, Any], told: str
) -> None:
    with belvedere.open(shop, slots=2) as db:
        db.sql("CREATE TABLE t (id STRING, s STRING, PRIMARY KEY (id))")
        db.table("t").put(row)
    refused = cli("export", "t", str(tmp_path / "t.csv"))
    assert refused.exit_code == 1
    assert told in refused.stderr
    assert (
        "choose another text" in cli("export", "t", str(tmp_path / "t.csv"), "--null", "a").stderr
    )
    assert os.listdir(tmp_path) == ["shop"], "nothing half is left"
    assert cli("export", "t", str(tmp_path / "t.csv"), "--null", "-").exit_code == 0


def make_views(shop: Path, rows: int) -> None:
    with belvedere.open(shop, slots=3) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id INT, v INT, PRIMARY KEY (id))")
        db.sql(
            "CREATE MATERIALIZED VIEW bag AS SELECT v FROM t; CREATE MATERIALIZED VIEW keyed AS"
            " SELECT id, v FROM t"
        )
        db.sql("CREATE MATERIALIZED VIEW by_v WITH (key = 'v') AS SELECT v, id FROM t")
        db.table("t").put_many([{"id": i, "v": i % 3} for i in range(rows)])
        db.catch_up()


def test_views_are_exported_with_every_copy_of_a_row_and_by_prefix(
    cli: Cli, shop: Path, tmp_path: Path
) -> None:
    make_views(shop, 10)
    values = [
        json.loads(line)["v"]
        for line in cli("export", "bag", "-", "--format", "jsonl").stdout.splitlines()
    ]
    assert sorted(values) == sorted(i % 3 for i in range(10))
    assert cli("export", "by_v", str(tmp_path / "one.parquet"), "1").exit_code == 0
    assert sorted(pq.read_table(tmp_path / "one.parquet").to_pylist(), key=str) == [
        {"v": 1, "id": i} for i in (1, 4, 7)
    ]
    assert (
        len(cli("export", "keyed", "-", "--format", "csv", "--limit", "4").stdout.splitlines())
        == 1 + 4
    )


def test_a_counted_row_is_exported_in_parts(shop: Path) -> None:
    make_views(shop, 250_001)
    with belvedere.open(shop) as db:
        for name in ("bag", "keyed", "by_v"):
            parts = list(db.view(name).batches())
            assert max(part.num_rows for part in parts) <= 100_000
            assert (
                pa.concat_tables(parts).sort_by("v") == db.view(name).to_arrow().sort_by("v")
                or name != "bag"
            )
            assert sum(part.num_rows for part in parts) == 250_001


def test_a_file_that_is_there_is_replaced_only_if_that_is_said(filled: Cli, tmp_path: Path) -> None:
    filled("put", "readings", "place=a", "number=1", "total=1")
    file = tmp_path / "rows.jsonl"
    file.write_text("mine")
    refused = filled("export", "readings", str(file))
    assert refused.exit_code == 1
    assert "is there already: choose another name, or replace it with --force" in refused.stderr
    assert file.read_text() == "mine"
    assert filled("export", "readings", str(file), "--force").exit_code == 0
    assert json.loads(file.read_text())["place"] == "a"
    assert (
        "is not a file"
        in filled("export", "readings", str(tmp_path), "--format", "csv", "--force").stderr
    )
    assert (
        "Parquet cannot be written to standard output"
        in filled("export", "readings", "-", "--format", "parquet").stderr
    )
    assert (
        "there is no table or view nothing"
        in filled("export", "nothing", str(tmp_path / "x.csv")).stderr
    )
    assert sorted(os.listdir(tmp_path)) == ["rows.jsonl", "shop"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_export_that_is_broken_off_leaves_nothing(
    shop: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with belvedere.open(shop, slots=2) as db:
        db.sql("CREATE TABLE t (id INT, s STRING, PRIMARY KEY (id))")
        for start in range(0, 400_000, 100_000):
            db.table("t").put_many(
                [{"id": i, "s": "x" * 50} for i in range(start, start + 100_000)]
            )
    ended = 0
    for _ in range(20):  # one that was through before it was broken off does not count
        (tmp_path / "t.jsonl").unlink(missing_ok=True)
        ended = broken_off(shop, tmp_path / "t.jsonl", number)
        if ended:
            break
    assert ended == 128 + number
    assert os.listdir(tmp_path) == ["shop"]


def broken_off(shop: Path, target: Path, number: signal.Signals) -> int:
    """How an export ends that gets a signal when it has written something."""
    command = "from belvedere.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", command, "--db", str(shop), "export", "t", str(target)]
    ) as process:
        parts = f".{target.name}.*"
        assert wait_until(
            lambda: (
                any(part.stat().st_size for part in target.parent.glob(parts))
                or target.exists()
                or None
            ),
            60,
        )
        process.send_signal(number)
        return process.wait(60)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_columns_too_many_are_left_out_if_that_is_said(
    cli: Cli, shop: Path, tmp_path: Path, ending: str
) -> None:
    with belvedere.open(shop, slots=2) as db:
        db.sql(
            "CREATE TABLE wide (id INT, colour STRING, v INT, PRIMARY KEY (id)); CREATE TABLE t (id"
            " INT, V INT, PRIMARY KEY (id))"
        )
        db.table("wide").put_many([{"id": i, "colour": "red", "v": i} for i in range(5)])
    file = str(tmp_path / f"wide.{ending}")
    assert cli("export", "wide", file).exit_code == 0
    refused = cli("import", "t", file)
    assert refused.exit_code == 1
    assert "colour" in refused.stderr
    assert cli("import", "t", file, "--ignore-others").exit_code == 0
    assert [row[1] for row in rows_of(shop, "t")] == list(range(5))
