"""SQL statements: each kind does one thing to a database and answers with a result."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from belvedere import modify
from belvedere.cost import Cost, estimate
from belvedere.cost.text import shown
from belvedere.errors import SchemaError, SqlError, Unsupported
from belvedere.operators.graph import bind
from belvedere.result import Message, Query, Result, Rows
from belvedere.sql import explain
from belvedere.sql.dialect import defining_query, parse, sql_of
from belvedere.sql.expressions import sql_type
from belvedere.sql.planner import PlannedView, plan_view
from belvedere.types import Column, Schema, SqlType
from belvedere.views import catalog
from belvedere.views.catalog import CatalogState
from belvedere.views.definitions import TableDefinition, ViewDefinition

if TYPE_CHECKING:
    from belvedere.database import Database

VIEW_OPTIONS = {"key", "consistency"}
TABLE_OPTIONS = {"before_images"}
_CONSISTENCY = {"strong"}


def execute(db: Database, text: str) -> Result:
    """Run one statement."""
    statement = parse(text)
    if isinstance(statement, exp.Command):
        return _command(db, text)
    for kind, run in _KINDS.items():
        if isinstance(statement, kind):
            return run(db, statement, text)
    if isinstance(statement, exp.Query):
        return Query(db, statement)
    raise SqlError(f"{type(statement).__name__.upper()} is not understood here")


def _create(db: Database, statement: exp.Create, text: str) -> Result:
    if statement.kind == "TABLE":
        return _create_table(db, statement)
    materialized = any(isinstance(p, exp.MaterializedProperty) for p in _properties(statement))
    if statement.kind == "VIEW" and materialized:
        return _create_view(db, statement, text)
    if statement.kind == "VIEW":
        raise SqlError("views are materialized here: write CREATE MATERIALIZED VIEW")
    raise SqlError(f"CREATE {statement.kind} is not understood here: CREATE TABLE and CREATE MATERIALIZED VIEW are")


def _create_table(db: Database, statement: exp.Create) -> Result:
    if not isinstance(statement.this, exp.Schema):
        raise SqlError("CREATE TABLE needs columns: CREATE TABLE t (id STRING, ..., PRIMARY KEY (id))")
    if statement.args.get("replace"):
        raise SqlError("CREATE OR REPLACE TABLE would lose rows: DROP TABLE first")
    options = _options(statement, TABLE_OPTIONS)
    columns, key = [], []
    for part in statement.this.expressions:
        if isinstance(part, exp.PrimaryKey):
            key = [e.name for e in part.expressions]
        elif isinstance(part, exp.ColumnDef):
            kinds = [c.kind for c in part.args.get("constraints") or []]
            if any(isinstance(k, exp.PrimaryKeyColumnConstraint) for k in kinds):
                key.append(part.name)
            nullable = not any(isinstance(k, exp.NotNullColumnConstraint) and not k.args.get("allow_null") for k in kinds)
            columns.append(Column(part.name, _column_type(part), nullable))
        else:
            raise SqlError(f"{sql_of(part)} is not understood in CREATE TABLE")
    spelled = {c.name.lower(): c.name for c in columns}
    schema = Schema(tuple(columns), tuple(spelled.get(k.lower(), k) for k in key))
    name, exists = _name(statement.this.this), bool(statement.args.get("exists"))
    images = options.get("before_images", "true").lower()
    if images not in ("true", "false"):
        raise SqlError(f"before_images = {images} is not understood: use true or false")
    made = catalog.create_table(db.store, name, schema, images == "true", exists)
    return Message(f"table {name} created" if made else f"table {name} exists already")


def _column_type(column: exp.ColumnDef) -> SqlType:
    if column.kind is None:
        raise SqlError(f"column {column.name} has no type")
    try:
        return sql_type(column.kind)
    except Unsupported as error:
        raise SchemaError(f"column {column.name}: {error.instead or error}") from error


def _create_view(db: Database, statement: exp.Create, text: str) -> Result:
    options = _options(statement, VIEW_OPTIONS)
    consistency = options.get("consistency", "strong")
    if consistency not in _CONSISTENCY:
        raise SqlError(f"consistency = '{consistency}' is not offered: use 'strong'")
    key = [part.strip() for part in options.get("key", "").split(",") if part.strip()]
    if isinstance(statement.this, exp.Schema):
        raise SqlError("a column list after the view's name is not understood: name the columns with AS in the SELECT")
    name, exists, again = _name(statement.this), bool(statement.args.get("exists")), bool(statement.args.get("replace"))
    made = catalog.create_view(db.store, name, defining_query(text), key, consistency, again, exists)
    if not made:
        return Message(f"view {name} exists already")
    return Message(f"view {name} requested: it is built by the next catch_up() or by a running pipeline")


def _drop(db: Database, statement: exp.Drop, text: str) -> Result:
    exists = bool(statement.args.get("exists"))
    said = []
    for target in statement.args.get("tables") or [statement.this]:
        name = _name(target)
        if statement.kind == "VIEW":
            there = catalog.drop_view(db.store, name, exists)
        elif statement.kind == "TABLE":
            dropped = catalog.drop_table(db.store, name, exists)
            there = dropped is not None
            if dropped is not None:
                db.store.base.drop(dropped.id)
        else:
            raise SqlError(f"DROP {statement.kind} is not understood here")
        kind = statement.kind.lower()
        said.append(f"{kind} {name} dropped" if there else f"there is no {kind} {name}")
    return Message(", ".join(said))


def _describe(db: Database, statement: exp.Describe, text: str) -> Result:
    found = _relation(db, _name(statement.this))
    rows = [
        {"column": c.name, "type": str(c.type), "key": found.schema.key.index(c.name) + 1 if c.name in found.schema.key else None}
        for c in found.schema.columns
    ]
    return Rows(pa.Table.from_pylist(rows, schema=pa.schema([("column", pa.string()), ("type", pa.string()), ("key", pa.int32())])))


def _refresh(db: Database, statement: exp.Refresh, text: str) -> Result:
    if statement.args.get("this") is not None:
        db.state().view(_name(statement.this))
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


def _command(db: Database, text: str) -> Result:
    """Statements that sqlglot leaves to us: SHOW, EXPLAIN and EXPLAIN COST."""
    words = " ".join(text.strip().rstrip(";").split())
    if re.fullmatch(r"(?i)show tables", words):
        return Rows(_names([(t.name, "table") for t in db.state().tables.values()]))
    if re.fullmatch(r"(?i)show materialized views|show views", words):
        state = db.state()
        return Rows(_names([(v.name, state.status[v.id].state) for v in state.views.values()], "state"))
    if match := re.fullmatch(r"(?i)show create (?:table|view|materialized view) (\S+)", words):
        return Message(create_text(_relation(db, match[1].strip("`"))))
    if match := re.fullmatch(r"(?is)explain\s+cost\s+(.*)", text.strip().rstrip(";")):
        return Message(shown(cost(db, match[1].strip())))
    if match := re.fullmatch(r"(?is)explain\s+(.*)", text.strip().rstrip(";")):
        return Message(_explain(db, match[1].strip()))
    raise SqlError(f"this statement is not understood: {words.split(' ')[0].upper()} ...")


def _explain(db: Database, what: str) -> str:
    """EXPLAIN of a view's name, or of a CREATE MATERIALIZED VIEW or SELECT as if it were one."""
    state = db.state()
    if re.fullmatch(r"[`\w]+", what):
        view = state.view(what.strip("`"))
        return explain.explain(view.planned, view.name, list(state.tables.values()), users(state, view.id) if view.bound else {})
    name, planned = _trial(state, what)
    return explain.explain(planned, name, list(state.tables.values()), users(state))


def cost(db: Database, what: str) -> Cost:
    """What a view would cost: a CREATE MATERIALIZED VIEW or SELECT as if it were one, or a view that is there, by its name."""
    state = db.state()
    tables = list(state.tables.values())
    if re.fullmatch(r"[`\w]+", what):
        view = state.view(what.strip("`"))
        if view.bound:
            return estimate(db.store, view.name, view.planned, tables, users(state, view.id))
        what = create_text(view)
    name, planned = _trial(state, what)
    return estimate(db.store, name, planned, tables, users(state))


def _trial(state: CatalogState, what: str) -> tuple[str, PlannedView]:
    """The plan that a view would have, with the nodes that it would share; new nodes have negative ids."""
    statement = parse(what)
    created = isinstance(statement, exp.Create)
    options = _options(statement, VIEW_OPTIONS) if created else {}
    key = [part.strip() for part in options.get("key", "").split(",") if part.strip()]
    others = [v.info for v in state.views.values()]
    planned = plan_view(defining_query(what) if created else what, key, [t.info for t in state.tables.values()], others)
    existing = {n.id: n for v in state.definitions() for n in v.nodes}
    nodes = bind(planned.nodes, existing.values(), count(-1, -1).__next__)
    return _name(statement.this) if created else "(query)", replace(planned, nodes=nodes)


def users(state: CatalogState, but: int = 0) -> dict[int, list[str]]:
    """Which views use a node, apart from one of them."""
    found: dict[int, list[str]] = {}
    for view in sorted(state.definitions(), key=lambda v: v.name):
        for node in view.nodes if view.id != but else ():
            found.setdefault(node.id, []).append(view.name)
    return found


def create_text(found: TableDefinition | ViewDefinition) -> str:
    """The statement that would create it again."""
    if isinstance(found, ViewDefinition):
        key = f" WITH (key = '{', '.join(found.key)}')" if found.key else ""
        return f"CREATE MATERIALIZED VIEW {found.name}{key} AS {found.select}"
    lines = [f"{c.name} {str(c.type).upper()}{'' if c.nullable else ' NOT NULL'}" for c in found.schema.columns]
    body = ", ".join([*lines, f"PRIMARY KEY ({', '.join(found.schema.key)})"])
    return f"CREATE TABLE {found.name} ({body})" + ("" if found.before_images else " WITH (before_images = false)")


def _relation(db: Database, name: str) -> TableDefinition | ViewDefinition:
    state = db.state()
    return state.tables[name.lower()] if name.lower() in state.tables else state.view(name)


def _names(rows: list[tuple[str, str]], second: str = "kind") -> pa.Table:
    return pa.table({"name": pa.array([r[0] for r in rows], pa.string()), second: pa.array([r[1] for r in rows], pa.string())})


def _name(node: Any) -> str:
    if not isinstance(node, exp.Table) or node.db:
        raise SqlError(f"{sql_of(node)} is not a plain name")
    return str(node.name)


def _properties(statement: exp.Create) -> list[exp.Expression]:
    properties = statement.args.get("properties")
    return list(properties.expressions) if properties else []


def _options(statement: exp.Create, known: set[str]) -> dict[str, str]:
    options = {}
    for p in _properties(statement):
        if isinstance(p, exp.MaterializedProperty):
            continue
        name = p.name.lower() if isinstance(p, exp.Property) else type(p).__name__
        if name not in known:
            raise SqlError(f"unknown option {name}: {', '.join(sorted(known))} can be set")
        value = p.args["value"]
        options[name] = value.name if isinstance(value, exp.Literal) else sql_of(value)
    return options
