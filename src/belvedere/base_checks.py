"""What is ours of tables that others write, beside the tables themselves.

captured tables        our picture of a table of HBase
relations of sources   our copy, which is followed
joined rows            of a view that an algorithm keeps; named like the view
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.joined import joined_name
from belvedere.epochs.base_check import BaseVerification, foreign_tables

if TYPE_CHECKING:
    from belvedere.capture.checking import Theirs
    from belvedere.database import Database


def checked_names(db: Database) -> list[str]:
    """All that can be compared. Raises StoreError if nothing can, and never will."""
    tables = db.state().tables.values()
    if db.store.foreign is not None:
        return [table.name for table in tables]
    if not db.state().sources:
        foreign_tables(db.store)  # raises
    joined = [t.joined.view for t in tables if t.joined is not None]
    state = db.state()
    return [t.name for t in tables if t.followed is not None and state.is_kept(t)] + joined


def verify_base(db: Database, name: str) -> BaseVerification:
    from belvedere.capture.checking import verify_theirs
    from belvedere.epochs import base_check

    table = _of_sources(db, name)
    if table is None:
        return base_check.verify_base(db.store, name, db.catch_up)
    return verify_theirs(db.store, table, _theirs(db, table), db.catch_up)


def repair_base(db: Database, name: str) -> BaseVerification:
    """Returns what was found."""
    from belvedere.epochs.base_repair import repair_base
    from belvedere.epochs.settings import Settings

    table = _of_sources(db, name)
    if table is None:
        return repair_base(db._coordinator(Settings()), name)
    found = verify_base(db, table.name)
    if not found.ok:
        _reload(db, table)
    return found


def _of_sources(db: Database, name: str) -> TableDefinition | None:
    """A table whose rows come from sources; None for all others."""
    tables = db.state().tables
    joined = tables.get(joined_name(name).lower())
    table = tables.get(name.lower()) if joined is None else joined
    if table is None or (table.followed is None and table.joined is None):
        return None
    return table


def _theirs(db: Database, table: TableDefinition) -> Theirs:
    from belvedere.capture.checking import RelationRows
    from belvedere.warehouse.checking import JoinedRows

    state = db.state()
    if table.followed is not None:
        source = db.connections.of(state.source(table.followed.source))
        return RelationRows(db.store, source, table)
    assert table.joined is not None
    sources = {name: db.connections.of(state.source(name)) for name in table.joined.sources}
    return JoinedRows(db.store, table, sources)


def _reload(db: Database, table: TableDefinition) -> None:
    """The relation is copied again, or the view loaded; only what differs is written."""
    from belvedere.sql.names import quoted
    from belvedere.warehouse.covered import ask_load

    if table.joined is not None:
        ask_load(db.store, table.joined.progress)
        db.catch_up()
        return
    assert table.followed is not None
    relation = table.name.partition(".")[2]
    parts = ".".join(map(quoted, relation.split(".")))
    db.sql(f"ALTER SOURCE {quoted(table.followed.source)} RELOAD {parts}")
    db.catch_up()
