"""DROP TABLE and DROP MATERIALIZED VIEW: of several all or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.catalog.state import CatalogState
from belvedere.catalog.tables import drop_table
from belvedere.catalog.views import drop_view
from belvedere.errors import CatalogError, SqlError
from belvedere.result import Message
from belvedere.sql.names import plain_name
from belvedere.sql.refusal import only
from belvedere.statements.joined import drop_joined_view, has_joined

if TYPE_CHECKING:
    from belvedere.database import Database

_RECLAIM = 0.1  # seconds that a DROP spends on removing rows; a pipeline removes the rest


def drop(db: Database, statement: exp.Drop) -> Message:
    if statement.kind not in ("VIEW", "TABLE"):
        raise SqlError(
            f"DROP {statement.kind} is not understood here: DROP TABLE and DROP MATERIALIZED"
            " VIEW are"
        )
    only(statement, f"DROP {statement.kind}")
    exists, kind = bool(statement.args.get("exists")), statement.kind.lower()
    names = [
        plain_name(target, f"DROP {statement.kind}")
        for target in statement.args.get("tables") or [statement.this]
    ]
    _check_drops(db.state(), kind, names, exists)
    said = []
    for name in names:
        left = ""
        if kind == "view" and has_joined(db.state(), name):
            there, left = True, drop_joined_view(db, name)
        else:
            there = (drop_view if kind == "view" else drop_table)(db.store, name, exists)
        said.append(f"{kind} {name} dropped{left}" if there else f"there is no {kind} {name}")
    db.store.base.reclaim(_RECLAIM)
    return Message(", ".join(said))


def _check_drops(state: CatalogState, kind: str, names: Sequence[str], exists: bool) -> None:
    """Refuse what would fail in the midst of several drops, before the first of them.

    Each is checked again when it is done.
    """
    there: Mapping[str, TableDefinition | ViewDefinition] = (
        state.views if kind == "view" else state.tables
    )
    others = state.tables if kind == "view" else state.views
    gone: set[str] = set()
    for name in names if len(names) > 1 else ():
        low = name.lower()
        if low in gone:
            raise SqlError(f"{name} is listed twice: list it once")
        if low in others and not (exists and kind == "table"):
            other, verb = (
                ("table", "DROP TABLE") if kind == "view" else ("view", "DROP MATERIALIZED VIEW")
            )
            raise CatalogError(f"{name} is a {other}: use {verb}")
        if low not in there:
            if exists:
                continue
            raise CatalogError(
                f"there is no {kind} {name}: SHOW"
                f" {'MATERIALIZED VIEWS' if kind == 'view' else 'TABLES'} lists them"
            )
        found = there[low]
        users = {
            v.name
            for v in state.definitions()
            if v.name.lower() not in {low, *gone} and _uses(v, found)
        }
        if users:
            raise CatalogError(
                f"{kind} {name} is used by {', '.join(sorted(users))}: drop these first, nothing"
                " was dropped"
            )
        gone.add(low)


def _uses(view: ViewDefinition, found: TableDefinition | ViewDefinition) -> bool:
    return (
        found.name.lower() in view.planned.reads
        if isinstance(found, ViewDefinition)
        else found.id in view.planned.sources
    )
