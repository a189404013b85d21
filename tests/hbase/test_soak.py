"""The shortest soak: an executor and the driver are killed, and views are right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hbase.soak_faults import WEIGHTS

pytestmark = [pytest.mark.hbase, pytest.mark.spark]
FAULTS = ("executor", "driver")


def test_views_are_right_after_an_executor_and_the_driver_were_killed(tmp_path: Path) -> None:
    assert set(FAULTS) <= set(WEIGHTS)
    options = ["--faults", ",".join(FAULTS), "--seed", "1", "--directory", str(tmp_path / "soak")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.hbase.soak", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "round 1: right" in done.stdout
