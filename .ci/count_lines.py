"""A plug-in of pytest that notes which lines of the source ran: `pytest -p count_lines`.

Each test process writes a file of slipcover's form into the directory BELVEDERE_LINES when it ends.
slipcover's own runner rewrites pytest too, which `--import-mode=importlib` does not take; its
importer alone is all that is needed. Functions that are counted cannot be pickled, so tests that
send code of ours to Spark are not counted.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import slipcover

_SOURCE = Path("src/belvedere").resolve()
_counter = slipcover.Slipcover(source=[str(_SOURCE)])
slipcover.ImportManager(_counter, slipcover.FileMatcher(sources=[_SOURCE])).__enter__()


def pytest_unconfigure() -> None:
    name = os.environ.get("PYTEST_XDIST_WORKER", "main")
    path = Path(os.environ["BELVEDERE_LINES"], f"{name}.json")
    path.write_text(json.dumps(_counter.get_coverage()))
