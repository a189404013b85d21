"""belvedere views: what is maintained."""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text

from belvedere.cli.options import Json
from belvedere.cli.tables import console, new_table
from belvedere.cli.terminal import database
from belvedere.cli.values import to_json
from belvedere.database import Database


def views(ctx: typer.Context, json: Json = False) -> None:
    """List the views: their state, key and SELECT."""
    with database(ctx) as db:
        found = described(db)
    if json:
        typer.echo(to_json(found))
        return
    out = console()
    if not found:
        out.print(
            'there are no views: create one with belvedere sql "CREATE MATERIALIZED VIEW ... AS'
            ' SELECT ..."',
            soft_wrap=True,
        )
        return
    table = new_table("view", "state", "key", "select")
    for view in found:
        cells = (view["state"], ", ".join(view["key"]), " ".join(view["select"].split()))
        table.add_row(Text(view["name"], "bold"), *(Text(cell) for cell in cells))
    out.print(table)


def described(db: Database) -> list[dict[str, Any]]:
    state = db.state()
    tables = {t.id: t.name for t in state.tables.values()}
    return [
        {
            "name": view.name,
            "state": "in error" if state.in_error(view) else state.status[view.id].state,
            "tables": [tables[source] for source in view.planned.sources],
            "key": list(view.schema.key),
            "columns": {c.name: str(c.type) for c in view.schema.columns},
            "select": view.select,
        }
        for view in sorted(state.definitions(), key=lambda v: v.name)
    ]
