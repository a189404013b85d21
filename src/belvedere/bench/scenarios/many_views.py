"""Many views: two hundred views of one table that keep the same ten aggregates, beside ten views
that keep them once.

What is maintained as in `maintain`: a second log on a table that holds a first one's rows, in
epochs. Views with the same auxiliary views share them, so only what is shown differs: each view's
own rows still have to be written.
"""

from __future__ import annotations

import time
from typing import Any

from belvedere.bench.results import ManyViews, Results
from belvedere.bench.scenarios.database import Database, fresh, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import many
from belvedere.graph import state_tables


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    return Results(many_views=tuple(_one(settings, variants) for variants in settings.variants))


def _one(settings: Settings, variants: int) -> ManyViews:
    first, second = settings.log(), settings.log(1)
    views = many(variants)
    with fresh(settings.work / "many-views", views) as database:
        database.write(first, settings.call)
        database.catch_up(settings.ops)
        ops = database.write(second, settings.call)
        start = time.perf_counter()
        database.catch_up(settings.epoch)
        seconds = time.perf_counter() - start
        return ManyViews(
            len(views),
            ops,
            seconds,
            settings.epoch,
            *_sharing(database),
            database.correct([first, second]),
        )


def _sharing(database: Database) -> tuple[int, int, int, int]:
    """Nodes of all views, different ones; state tables of all views, different ones."""
    definitions: Any = database.db.state().views.values()
    nodes = [node for view in definitions for node in view.planned.nodes]
    tables = [table for node in nodes for table in state_tables(node)]
    return len(nodes), len({node.id for node in nodes}), len(tables), len(set(tables))


if __name__ == "__main__":
    main(run)
