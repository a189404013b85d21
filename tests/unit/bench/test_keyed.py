"""The scenario of statements by key, in small: every statement agrees with what it is held
against.
"""

from __future__ import annotations

from pathlib import Path

from belvedere.bench import workload
from belvedere.bench.scenarios import keyed
from belvedere.bench.scenarios.database import Database, created
from belvedere.bench.scenarios.settings import Settings
from belvedere.bench.views import members
from belvedere.epochs.local import LocalRunner


def test_statements_by_key_agree_with_get_and_put(tmp_path: Path) -> None:
    database = Database(tmp_path / "keyed", members("V_all"))
    database.db._runner = LocalRunner(database.db.store)
    log = workload.generate(2_000, 500, 20, seed=1)
    with created(database):
        database.write(log, 1_000)
        database.catch_up(10_000)
        settings = Settings(work=tmp_path, puts=3)
        found = [
            keyed._measured(database, measure, settings, correct=True)
            for measure in keyed._measures(database)
        ]
        assert database.correct([log])
    names = {(each.relation, each.statement.split()[0]) for each in found}
    assert names == {(name, "SELECT") for name in ("r", "V1", "V4")} | {
        ("r", "UPDATE"),
        ("r", "DELETE"),
    }
    assert all(each.correct and each.count == 3 for each in found)
    assert all(each.planning_ms > 0 and each.beside_ms > 0 for each in found)
