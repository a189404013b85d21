"""The demo as continuous integration sees it: a short stream, no terminal, real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import belvedere
from belvedere.cli.demo.shop import LATE, VIEWS, Shop

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_a_short_demo_ends_with_a_tick_for_every_view(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    command = [sys.executable, "-c", "from belvedere.cli import main; main()", "demo", str(shop)]
    sizes = ["--seconds", "3", "--rate", "1000", "--opening", "2000"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(
        [*command, *sizes],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.count("✓") == len(VIEWS) + 1
    assert "\x1b" not in done.stdout, "no colours and no cursor movements without a terminal"
    assert [p.name for p in tmp_path.iterdir()] == ["shop"], (
        "Spark must not leave its directories where the user stands"
    )
    with belvedere.open(shop) as db:
        status = db.status()
        assert {v.name for v in status.views} == {*(v.name for v in VIEWS), LATE.name}
        assert status.written > 2_000
        assert status.lag_operations == 0


def test_the_shop_is_the_same_for_the_same_seed_and_knows_its_orders() -> None:
    one, other = Shop(3), Shop(3)
    assert one.opening(100) == other.opening(100)
    rows, deletes = one.operations(1000)
    assert (rows, deletes) == other.operations(1000)
    known = {f"o{i:07}" for i in range(1, 101)}
    for row, deleted in zip(rows, deletes, strict=True):
        if deleted:
            known.remove(row["id"])  # only what is there is deleted
        else:
            known.add(row["id"])
    assert 0.1 < sum(deletes) / 1000 < 0.2
