"""One file of a database's directory is flipped, cut, older, missing or empty: whatever is read is
right, or an error that names what is damaged. Never another number, never a signal: cases run in
child processes.

BELVEDERE_DAMAGES sets the number of cases (`make soak-damage`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.damages import make

ROOT = Path(__file__).parents[2]
CASES = int(os.environ.get("BELVEDERE_DAMAGES", "48"))
BATCH = max(CASES // 4, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("damages")
    make(made)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_a_damaged_file_is_an_error_that_names_it_or_changes_nothing(
    folder: Path, first: int
) -> None:
    last = min(first + BATCH, CASES)
    command = [sys.executable, "-m", "tests.integration.damages", str(folder), str(first)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    }
    done = subprocess.run(
        [*command, str(last)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    cases = [line.split(" -> ") for line in done.stdout.splitlines()]
    assert len(cases) == last - first
    for what, verdict in cases:
        assert verdict.startswith(("right", "refused")), (what, verdict)
        for error in verdict.removeprefix("refused: ").split(" | "):
            assert error.startswith("right") or _names_something(error, folder), (what, error)


def _names_something(error: str, folder: Path) -> bool:
    return any(word in error for word in (str(folder), "table ", "view "))
