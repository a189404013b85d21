"""One part of a store's directory is lost, cut off, or from another time or store: it is refused,
or what is read is right.

Never a wrong view, never a signal: cases run in child processes. BELVEDERE_MIXTURES sets the number
of histories, of ten cases each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HISTORIES = int(os.environ.get("BELVEDERE_MIXTURES", "12"))
BATCH = 4
SOUND = ("nothing", "locks")  # of these nothing may be refused
UNSOUND = ("missing", "empty", "stranger", "swap")  # of these everything


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, HISTORIES, BATCH))
def test_parts_that_do_not_belong_together_are_refused_or_right(tmp_path: Path, first: int) -> None:
    last = min(first + BATCH, HISTORIES)
    command = [
        sys.executable,
        "-m",
        "tests.integration.mixtures",
        str(tmp_path),
        str(first),
        str(last),
    ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    cases = [line.split(" -> ") for line in done.stdout.splitlines()]
    assert len(cases) == 10 * (last - first)
    for what, verdict in cases:
        kind = what.split(": ")[2].partition(",")[0].strip()
        expected = (
            {"right"} if kind in SOUND else {"refused"} if kind in UNSOUND else {"right", "refused"}
        )
        assert verdict in expected, (what, verdict)
