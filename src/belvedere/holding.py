"""Views are verified and repaired with all rows that they are made of here: relations that are not
kept are copied for that, and forgotten afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from belvedere.catalog.filling import hold_rows, let_go
from belvedere.stores.base import TableId
from belvedere.waiting import wait_until

if TYPE_CHECKING:
    from belvedere.database import Database
    from belvedere.epochs.verify import Verification

_LONGEST = 24 * 3600.0  # seconds; who is killed leaves the rows here for so long


def verify(db: Database, view: str) -> Verification:
    from belvedere.epochs.verify import verify

    with rows_held(db, view):
        return verify(db.store, db.spark, view)


def repair(db: Database, view: str) -> Verification:
    from belvedere.epochs.repair import repair
    from belvedere.epochs.settings import Settings

    with rows_held(db, view):
        return repair(db._coordinator(Settings()), db.spark, view)


@contextmanager
def rows_held(db: Database, view: str) -> Iterator[None]:
    """All rows that a view is made of can be read in the block. Raises what is wrong with a source
    that has to be asked for them.
    """
    state = db.state()
    used = set(state.view(view).planned.sources)
    wanted = [t.id for t in state.tables.values() if t.id in used and not state.is_kept(t)]
    if not wanted:
        yield
        return
    until = time.time() + _LONGEST
    hold_rows(db.store, wanted, until)
    try:
        db.catch_up()
        wait_until(lambda: _are_here(db, wanted) or None, None)
        yield
    finally:
        let_go(db.store, wanted, until)


def _are_here(db: Database, wanted: list[TableId]) -> bool:
    """All copies are in the epochs. A coordinator notes that between two of them."""
    if db.state().adopting.keys().isdisjoint(wanted):
        return True
    db.catch_up()
    return False
