"""REFRESH MATERIALIZED VIEW: all views are brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.result import Message
from belvedere.sql.names import plain_name
from belvedere.sql.refusal import only

if TYPE_CHECKING:
    from belvedere.database import Database


def refresh(db: Database, statement: exp.Refresh) -> Message:
    if str(statement.args.get("kind")) != "MATERIALIZED VIEW":
        raise SqlError("only views are refreshed: write REFRESH MATERIALIZED VIEW v")
    only(statement, "REFRESH MATERIALIZED VIEW")
    db.state().view(plain_name(statement.this, "REFRESH MATERIALIZED VIEW"))
    epochs = db.catch_up()
    return Message(f"caught up in {len(epochs)} epoch(s)")
