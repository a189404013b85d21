"""SQL statements: each kind does one thing to a database and answers with a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from belvedere import explain, modify
from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.catalog.state import CatalogState
from belvedere.catalog.tables import create_table, drop_table
from belvedere.catalog.views import create_view, drop_view
from belvedere.cost import Cost, estimate
from belvedere.cost.text import shown
from belvedere.errors import CatalogError, SqlError
from belvedere.graph import bind, places
from belvedere.result import Message, Query, Result, Rows
from belvedere.sql.declaration import declared_table, declared_view
from belvedere.sql.dialect import (
    Token,
    TokenType,
    blanked,
    check_query_at,
    defining_query,
    parse,
    query_start,
    words_of,
)
from belvedere.sql.names import key_option, name_in, plain_name, quoted
from belvedere.sql.planned import PlannedView
from belvedere.sql.planner import plan_view
from belvedere.sql.refusal import only

if TYPE_CHECKING:
    from belvedere.database import Database

_STATEMENTS = (
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "SHOW",
    "DESCRIBE",
    "EXPLAIN",
    "REFRESH",
)
_RECLAIM = 0.1  # seconds that a DROP spends on removing rows; a pipeline removes the rest
_EXPLAINED = "EXPLAIN takes the name of a view, a SELECT or a CREATE MATERIALIZED VIEW"


def execute(db: Database, text: str) -> Result:
    """Run one statement."""
    words = words_of(text)
    if words and words[0].text.upper() in _COMMANDS:
        return _COMMANDS[words[0].text.upper()](db, text, words)
    statement = parse(text)
    for kind, run in _KINDS.items():
        if isinstance(statement, kind):
            return run(db, statement, text)
    if isinstance(statement, exp.Query):
        return Query(db, statement)
    raise _not_understood(text, words)


def _not_understood(text: str, words: Sequence[Token]) -> SqlError:
    first = words[0].text.upper()
    start = query_start(text) if first == "CREATE" else None
    if start is not None:
        # the parser gives up on a CREATE without a word if its SELECT is not valid
        check_query_at(text, start)
    if first in _STATEMENTS:
        return SqlError(f"this form of {first} is not understood: docs/sql.md lists those that are")
    return SqlError(
        f"{first} is not understood here: a statement begins with {', '.join(_STATEMENTS[:-1])} or"
        f" {_STATEMENTS[-1]}"
    )


def _create(db: Database, statement: exp.Create, text: str) -> Result:
    if statement.kind == "TABLE":
        table = declared_table(statement)
        made = create_table(
            db.store, table.name, table.schema, table.before_images, table.if_not_exists
        )
        return Message(
            f"table {table.name} created" if made else f"table {table.name} exists already"
        )
    if statement.kind != "VIEW":
        raise SqlError(
            f"CREATE {statement.kind} is not understood here: CREATE TABLE and CREATE MATERIALIZED"
            " VIEW are"
        )
    view = declared_view(statement)
    made = create_view(
        db.store,
        view.name,
        defining_query(text),
        view.key,
        view.consistency,
        view.replace,
        view.if_not_exists,
    )
    if not made:
        return Message(f"view {view.name} exists already")
    return Message(
        f"view {view.name} requested: it is built by the next catch_up() or by a running pipeline"
    )


def _drop(db: Database, statement: exp.Drop, text: str) -> Result:
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
        there = (drop_view if kind == "view" else drop_table)(db.store, name, exists)
        said.append(f"{kind} {name} dropped" if there else f"there is no {kind} {name}")
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


def _describe(db: Database, statement: exp.Describe, text: str) -> Result:
    if str(statement.args.get("kind") or "TABLE") != "TABLE":
        raise SqlError(
            f"DESCRIBE {statement.args['kind']} is not understood here: write DESCRIBE and the name"
            " of a table or view"
        )
    only(statement, "DESCRIBE")
    found = db.state().relation(plain_name(statement.this, "DESCRIBE"))
    rows = [
        {
            "column": c.name,
            "type": str(c.type),
            "key": found.schema.key.index(c.name) + 1 if c.name in found.schema.key else None,
        }
        for c in found.schema.columns
    ]
    return Rows(
        pa.Table.from_pylist(
            rows,
            schema=pa.schema([("column", pa.string()), ("type", pa.string()), ("key", pa.int32())]),
        )
    )


def _refresh(db: Database, statement: exp.Refresh, text: str) -> Result:
    if str(statement.args.get("kind")) != "MATERIALIZED VIEW":
        raise SqlError("only views are refreshed: write REFRESH MATERIALIZED VIEW v")
    only(statement, "REFRESH MATERIALIZED VIEW")
    db.state().view(plain_name(statement.this, "REFRESH MATERIALIZED VIEW"))
    epochs = db.catch_up()
    return Message(f"caught up in {len(epochs)} epoch(s)")


_KINDS: dict[type[exp.Expression], Callable[[Database, Any, str], Result]] = {
    exp.Create: _create,
    exp.Drop: _drop,
    exp.Insert: lambda db, s, _: Message(modify.insert(db, s)),
    exp.Update: lambda db, s, _: Message(modify.update(db, s)),
    exp.Delete: lambda db, s, _: Message(modify.delete(db, s)),
    exp.Describe: _describe,
    exp.Refresh: _refresh,
}


def _show(db: Database, text: str, words: Sequence[Token]) -> Result:
    said = [word.text.upper() for word in words[1:]]
    if said == ["TABLES"]:
        state = db.state()
        return Rows(
            _names(
                [
                    (t.name, "table, being dropped" if t.id in state.dropping else "table")
                    for t in state.tables.values()
                ]
            )
        )
    if said in (["MATERIALIZED", "VIEWS"], ["VIEWS"]):
        state = db.state()
        return Rows(
            _names([(v.name, state.status[v.id].state) for v in state.views.values()], "state")
        )
    for kind in (["TABLE"], ["VIEW"], ["MATERIALIZED", "VIEW"]):
        name = (
            name_in(words[len(kind) + 2 :]) if said[: len(kind) + 1] == ["CREATE", *kind] else None
        )
        if name is not None:
            return Message(create_text(db.state().relation(name)))
    raise SqlError(
        "this form of SHOW is not understood: write SHOW TABLES, SHOW MATERIALIZED VIEWS or SHOW"
        " CREATE TABLE and a name"
    )


def _explained(db: Database, text: str, words: Sequence[Token]) -> Result:
    """EXPLAIN and EXPLAIN COST."""
    of_cost = (
        len(words) > 2
        and words[1].text.upper() == "COST"
        and words[1].token_type != TokenType.IDENTIFIER
    )
    place = 2 if of_cost else 1
    if len(words) <= place:
        raise SqlError(f"{_EXPLAINED}: write one of them after EXPLAIN")
    what = blanked(text, words[place].start)
    return Message(shown(cost(db, what)) if of_cost else _explain(db, what))


_COMMANDS: dict[str, Callable[[Database, str, Sequence[Token]], Result]] = {
    "SHOW": _show,
    "EXPLAIN": _explained,
}


def _explain(db: Database, what: str) -> str:
    """EXPLAIN of a view's name, or of a CREATE MATERIALIZED VIEW or SELECT as if it were one."""
    state = db.state()
    known = name_in(words_of(what))
    if known is not None:
        view = state.view(known)
        return explain.explain(
            view.planned,
            view.name,
            list(state.tables.values()),
            users(state, view.id) if view.bound else {},
        )
    name, planned = _trial(state, what)
    return explain.explain(planned, name, list(state.tables.values()), users(state))


def cost(db: Database, what: str) -> Cost:
    """What a view would cost: a CREATE MATERIALIZED VIEW or SELECT as if it were one, or a view
    that is there, by its name.
    """
    state = db.state()
    tables = list(state.tables.values())
    known = name_in(words_of(what))
    if known is not None:
        view = state.view(known)
        if view.bound:
            return estimate(db.store, view.name, view.planned, tables, users(state, view.id))
        what = create_text(view)
    name, planned = _trial(state, what)
    return estimate(db.store, name, planned, tables, users(state))


def _trial(state: CatalogState, what: str) -> tuple[str, PlannedView]:
    """The plan that a view would have, with the nodes that it would share; new nodes have negative
    ids.
    """
    statement = parse(what)
    start = query_start(what) if isinstance(statement, exp.Command) else None
    if start is not None:
        check_query_at(what, start)
    view = declared_view(statement) if isinstance(statement, exp.Create) else None
    if view is None and not isinstance(statement, exp.Query):
        raise SqlError(f"{_EXPLAINED}, not {words_of(what)[0].text.upper()}")
    others = [v.info for v in state.views.values()]
    planned = plan_view(
        defining_query(what) if view else what,
        view.key if view else (),
        [t.info for t in state.tables.values()],
        others,
    )
    existing = {n.id: n for v in state.definitions() for n in v.nodes}
    nodes = bind(planned.nodes, places(existing.values()), count(-1, -1).__next__)
    return view.name if view else "(query)", replace(planned, nodes=nodes)


def users(state: CatalogState, but: int = 0) -> dict[int, list[str]]:
    """Which views use a node, apart from one of them."""
    found: dict[int, list[str]] = {}
    for view in sorted(state.definitions(), key=lambda v: v.name):
        for node in view.nodes if view.id != but else ():
            found.setdefault(node.id, []).append(view.name)
    return found


def create_text(found: TableDefinition | ViewDefinition) -> str:
    """The statement that would create it again."""
    name = quoted(found.name)
    if isinstance(found, ViewDefinition):
        key = f" WITH (key = {key_option(found.key)})" if found.key else ""
        return f"CREATE MATERIALIZED VIEW {name}{key} AS {found.select}"
    lines = [
        f"{quoted(c.name)} {str(c.type).upper()}{'' if c.nullable else ' NOT NULL'}"
        for c in found.schema.columns
    ]
    body = ", ".join([*lines, f"PRIMARY KEY ({', '.join(map(quoted, found.schema.key))})"])
    return f"CREATE TABLE {name} ({body})" + (
        "" if found.before_images else " WITH (before_images = false)"
    )


def _names(rows: list[tuple[str, str]], second: str = "kind") -> pa.Table:
    return pa.table(
        {
            "name": pa.array([r[0] for r in rows], pa.string()),
            second: pa.array([r[1] for r in rows], pa.string()),
        }
    )
