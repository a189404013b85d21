"""A table or a view by its name, whichever there is."""

from __future__ import annotations

from belvedere.database import Database
from belvedere.errors import CatalogError
from belvedere.table import Table
from belvedere.view import View


def relation(db: Database, name: str) -> Table | View:
    state = db.state()
    if name.lower() in state.tables:
        return db.table(name)
    if name.lower() in state.views:
        return db.view(name)
    names = ", ".join(
        sorted([t.name for t in state.tables.values()] + [v.name for v in state.views.values()])
    )
    advice = f"there are {names}" if names else "create a table first, with belvedere sql"
    raise CatalogError(f"there is no table or view {name}: {advice}")
