"""EXPLAIN, EXPLAIN COST and EXPLAIN WHY: how a view is, or would be, maintained, what that costs,
and of what a record of it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from belvedere import explain as texts
from belvedere.catalog.definitions import COMPLETE, STRONG, Joined, ViewDefinition, given
from belvedere.catalog.joined import joined_name
from belvedere.catalog.state import CatalogState
from belvedere.catalog.views import check_reached
from belvedere.cost import Cost, estimate, history_cost
from belvedere.cost.text import shown
from belvedere.encoding import KeyCodec
from belvedere.errors import SqlError
from belvedere.graph import bind, places
from belvedere.readers.keyed import keyed_of
from belvedere.result import Message
from belvedere.sql.declaration import declared_view
from belvedere.sql.dialect import (
    Token,
    TokenType,
    blanked,
    check_query_at,
    defining_query,
    parse,
    query_start,
    sql_of,
    words_of,
)
from belvedere.sql.names import name_in, quoted
from belvedere.sql.parameters import Parameters, has_parameters, refuse_parameters
from belvedere.sql.parameters import bind as bind_parameters
from belvedere.sql.planned import PlannedView
from belvedere.sql.planner import plan_view
from belvedere.sql.query.direct import Direct, direct
from belvedere.sql.versions import version_of, without_versions
from belvedere.statements.show import create_text
from belvedere.stores.base import TableId

if TYPE_CHECKING:
    from belvedere.database import Database
    from belvedere.why import Why

_EXPLAINED = "EXPLAIN takes the name of a view, a SELECT or a CREATE MATERIALIZED VIEW"


def explain(
    db: Database, text: str, words: Sequence[Token], params: Parameters | None = None
) -> Message:
    """EXPLAIN, EXPLAIN COST and EXPLAIN WHY."""
    if _says(words, "WHY"):
        return Message(str(why(db, blanked(text, words[2].start), params)))
    of_cost = _says(words, "COST")
    place = 2 if of_cost else 1
    if len(words) <= place:
        raise SqlError(f"{_EXPLAINED}: write one of them after EXPLAIN")
    what = _with_values(blanked(text, words[place].start), params)
    return Message(shown(cost(db, what)) if of_cost else _plan_text(db, what))


def _says(words: Sequence[Token], word: str) -> bool:
    """Whether this stands behind EXPLAIN, and something behind it."""
    quoted = TokenType.IDENTIFIER
    return len(words) > 2 and words[1].text.upper() == word and words[1].token_type != quoted


def why(db: Database, what: str, params: Parameters | None) -> Why:
    """Why a view has a record: `v WHERE region = 'emea'`, with all columns of the key, and `v
    VERSION AS OF 41 WHERE ...` for the past.
    """
    text = f"SELECT * FROM {what.strip()}"
    query = parse(text)
    as_of = version_of(query)
    if as_of is not None:
        query = parse(without_versions(text))
    bind_parameters(query, params)
    tables = list(query.find_all(exp.Table))
    name = tables[0].name if tables else ""
    if not name:
        raise SqlError(
            "EXPLAIN WHY takes a view and one key: write EXPLAIN WHY view WHERE column = ..."
        )
    view = db.state().view(name)
    if not view.schema.key and query.args.get("where") is None:
        return db.view(name).why((), as_of)
    found = direct(query, {name.lower(): keyed_of(view)})
    keys = _keys_of(found) if found is not None else set()
    if len(keys) != 1:
        raise SqlError(
            f"EXPLAIN WHY takes a view and one key: write EXPLAIN WHY {quoted(view.name)} WHERE"
            f" {' AND '.join(f'{quoted(column)} = ...' for column in view.schema.key)}"
        )
    return db.view(name).why(keys.pop(), as_of)


def _keys_of(found: Direct) -> set[tuple[Any, ...]]:
    """What is asked for, if these are whole keys; 0.0 and -0.0 are the same here."""
    columns = found.keyed.schema.key_columns
    codec = KeyCodec(tuple(c.type for c in columns), normalize=False)
    if not all(each.is_key(len(columns)) for each in found.ranges):
        return set()
    return {codec.decode_one(b"".join(each.bound)) for each in found.ranges}


def _with_values(what: str, params: Parameters | None) -> str:
    """What is explained, with literals for its parameters if it has any."""
    if params is None and not has_parameters(what):
        return what
    statement = parse(what)
    if isinstance(statement, exp.Insert | exp.Update | exp.Delete):
        return what  # which is not explained, whatever the values
    if not isinstance(statement, exp.Query):
        refuse_parameters(statement, words_of(what)[0].text.upper())
    bind_parameters(statement, params)
    return sql_of(statement) if params else what


def _plan_text(db: Database, what: str) -> str:
    """EXPLAIN of a view's name, or of a CREATE MATERIALIZED VIEW or SELECT as if it were one."""
    state = db.state()
    known = name_in(words_of(what))
    if known is not None:
        view = state.view(known)
        shared = users(state, view.id) if view.bound else {}
        plan = texts.explain(view.planned, view.name, list(state.tables.values()), shared)
        table = state.tables.get(joined_name(view.name).lower())
        if table is not None and table.joined is not None:
            return plan + _algorithm_text(table.joined, view)
        return plan + level_text(view.consistency)
    name, planned = try_plan(state, what, db.store.capabilities.longest_key)
    plan = texts.explain(planned, name, list(state.tables.values()), users(state))
    return plan + level_text(_level_asked(db, what))


def _algorithm_text(joined: Joined, view: ViewDefinition) -> str:
    sources, level = ", ".join(joined.sources), joined.given(view.given)
    kept = f"\nalgorithm: {joined} keeps {joined_name(view.name)} from {sources}"
    asked = "" if view.consistency == level else f"{view.consistency} is asked, "
    return f"{kept}\nconsistency: {asked}{level} is given"


def _level_asked(db: Database, what: str) -> str:
    """What CREATE would refuse is refused here."""
    statement = parse(what)
    if not isinstance(statement, exp.Create):
        return STRONG
    asked = declared_view(statement).consistency
    check_reached(db.store, asked)
    return asked


def level_text(asked: str) -> str:
    """What is asked, if that is not what every view has, and what is given."""
    if asked == COMPLETE:
        return "\nconsistency: complete: every transaction is an epoch of its own, in all views"
    asks = "" if asked == STRONG else f"{asked} is asked, "
    return f"\nconsistency: {asks}{given(asked)} is given"


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
            used = users(state, view.id)
            found = estimate(
                db.store,
                view.name,
                view.planned,
                tables,
                used,
                places=_rows_in(state, view.planned),
            )
            past = history_cost(db.store, view)
            return replace(found, history=past, is_complete=view.is_complete)
        what = create_text(view)
    name, planned = try_plan(state, what, db.store.capabilities.longest_key)
    found = estimate(db.store, name, planned, tables, users(state), places=_rows_in(state, planned))
    past, is_complete = history_cost(db.store, None), _level_asked(db, what) == COMPLETE
    return replace(found, history=past, is_complete=is_complete)


def _rows_in(state: CatalogState, planned: PlannedView) -> dict[TableId, TableId]:
    """Under which ids the rows of a view's base tables are."""
    used = (table for table in state.tables.values() if table.id in planned.sources)
    return {table.id: state.readable(table).id for table in used}


def try_plan(
    state: CatalogState, what: str, longest_key: int | None = None
) -> tuple[str, PlannedView]:
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
        longest_key,
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
