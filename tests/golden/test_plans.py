"""SQL in, maintenance graph out: one file per construct.

`BELVEDERE_UPDATE_GOLDEN=1 pytest tests/golden` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belvedere.explain import explain
from belvedere.graph import from_json, to_json
from belvedere.sql.planner import plan_view
from tests.golden.tables import TABLES, VIEWS

FILES = sorted((Path(__file__).parent / "plans").glob("*.txt"))
UPDATE = bool(os.environ.get("BELVEDERE_UPDATE_GOLDEN"))
_RULE = "-" * 20
_KEY = "WITH key ="


def statement_of(file: Path) -> tuple[str, list[str]]:
    """A SELECT, on its last line perhaps the key that the user names."""
    return _select_and_key(file.read_text(encoding="utf-8").partition(f"{_RULE}\n")[0].strip())


def _select_and_key(statement: str) -> tuple[str, list[str]]:
    select, _, key = statement.partition(_KEY)
    return select, [name.strip() for name in key.split(",") if name.strip()]


def graph_of(statement: str) -> str:
    select, names = _select_and_key(statement)
    planned = plan_view(select, names, [t.info for t in TABLES], VIEWS)
    assert from_json(to_json(planned.nodes)) == planned.nodes
    return explain(planned, "example", TABLES)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_maintenance_graph_is_the_golden_one(file: Path) -> None:
    statement, _, golden = file.read_text(encoding="utf-8").partition(f"{_RULE}\n")
    graph = graph_of(statement.strip()) + "\n"
    if UPDATE:
        file.write_text(f"{statement.strip()}\n{_RULE}\n{graph}", encoding="utf-8")
    assert UPDATE or graph == golden


def test_there_are_golden_files() -> None:
    assert len(FILES) >= 60
