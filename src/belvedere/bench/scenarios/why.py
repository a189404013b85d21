"""Why: how long it takes to say of which base rows a record of a view is made, V1 to V5.

V1, V3, V4 and V5 find rows by what the views keep and by the key of the table. V2 stands alone in a
database, so its groups are found by reading the table, and it is asked less often. Nothing is
printed, so the log is not read.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from belvedere.bench.disk_results import Explanation
from belvedere.bench.results import Results
from belvedere.bench.scenarios.database import Database, fresh, warm_up
from belvedere.bench.scenarios.join_database import fresh_join
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import V5, View, members
from belvedere.why import Why

_ASKED, _ASKED_WHOLE = 200, 10
_WHOLE = "V2"  # is found by reading the table, where no other view names the rows


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    kept = [view for view in members("V_all") if view.name != _WHOLE]
    groups = _of_one_table(settings, kept), _of_one_table(settings, members(_WHOLE))
    found = sorted(chain(*groups), key=lambda each: each.view)
    return Results(explanations=(*found, _of_join(settings)))


def _of_one_table(settings: Settings, views: Sequence[View]) -> Iterator[Explanation]:
    log = settings.log()
    with fresh(settings.work / "why", views) as database:
        database.write(log, settings.call)
        database.catch_up(settings.ops)
        correct = database.correct([log])
        for view in views:
            yield _explained(database, view, settings.seed, correct)


def _of_join(settings: Settings) -> Explanation:
    log = settings.join_log()
    with fresh_join(settings.work / "why-join") as database:
        database.write(log, settings.call)
        database.catch_up(settings.ops)
        return _explained(database, V5, settings.seed, database.correct([log]))


def _explained(database: Database, view: View, seed: int, correct: bool) -> Explanation:
    asked = database.db.view(view.name)
    records = asked.to_arrow().select(asked.schema.key)
    count = _ASKED_WHOLE if view.name == _WHOLE else _ASKED
    drawn = np.random.default_rng(seed).integers(0, records.num_rows, count)
    keys = [tuple(row.values()) for row in records.take(drawn).to_pylist()]
    asked.why(keys[0])  # which loads what it needs
    seconds, rows = [], []
    for key in keys:
        start = time.perf_counter()
        answer = asked.why(key)
        seconds.append(time.perf_counter() - start)
        correct = correct and _is_right(view, answer)
        rows.append(answer.rows("r").num_rows)
    p50_ms = statistics.median(seconds) * 1e3
    return Explanation(view.name, count, int(statistics.median(rows)), p50_ms, correct)


def _is_right(view: View, answer: Why) -> bool:
    """All rows of a group, or the one row of the table and of the other one."""
    rows = answer.rows("r")
    if answer.row is None:
        return False
    if view.name == "V2":
        return bool(rows.num_rows == answer.row["n"])
    if view.name == "V3":
        values = rows.column("val").to_pylist()
        return (min(values), max(values)) == (answer.row["lo"], answer.row["hi"])
    return bool(rows.num_rows == 1 and rows.column("key")[0].as_py() == answer.row["key"])


if __name__ == "__main__":
    main(run)
