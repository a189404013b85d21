"""One SELECT, turned into stages in the order in which SQL evaluates its clauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from belvedere.sql.front.binding import text_of
from belvedere.sql.front.clauses import Clauses, bind_clauses, bind_where
from belvedere.sql.front.names import Names
from belvedere.sql.query.aggregation import normalised, translate_groups
from belvedere.sql.query.computed import check_memberships, with_subqueries, with_windows
from belvedere.sql.query.context import Context
from belvedere.sql.query.ordering import direction, limits
from belvedere.sql.query.refusal import not_understood
from belvedere.sql.query.sources import source
from belvedere.sql.query.stage import Output, Stage, Text, column_of

_DISTINCT_ON = (
    "number the rows of each group with row_number() in a subquery, and keep those with 1"
)
_NO_OUTPUT = "must be an output, because of SELECT DISTINCT"


def translate_select(query: exp.Select, context: Context) -> Text:
    stage = source(query, context)
    clauses = bind_clauses(query, stage.names)
    where = _where(query, stage.names)
    _check_memberships(clauses, where)
    stage = with_subqueries(stage, [*where, *clauses.over_rows], context)
    stage = stage.filtered(where, "WHERE")
    if clauses.grouped:
        stage = _group(stage, clauses, context)
    stage = with_windows(stage, clauses.results, context)
    return _project(query, stage, clauses, context)


def _where(query: exp.Select, names: Names) -> list[exp.Expr]:
    """The condition, if there is one."""
    where = query.args.get("where")
    return [bind_where(where.this, names)] if where else []


def _check_memberships(clauses: Clauses, where: Sequence[exp.Expr]) -> None:
    """In WHERE and HAVING only the truth of x IN (SELECT ...) matters."""
    values = [*clauses.items, *clauses.groups]
    for node in [*(item.node for item in values), *(key.this for key in clauses.order)]:
        check_memberships(node, tested=False)
    for test in [*where, *clauses.having]:
        check_memberships(test, tested=True)


def _group(stage: Stage, clauses: Clauses, context: Context) -> Stage:
    grouped = translate_groups(stage, [g.node for g in clauses.groups], clauses.calls, context)
    computed = [node for node in clauses.results if grouped.value(text_of(node)) is None]
    return with_subqueries(grouped, computed, context).filtered(clauses.having, "HAVING")


def _project(query: exp.Select, stage: Stage, clauses: Clauses, context: Context) -> Text:
    """The outputs c0, c1, ..., in order if there is one."""
    _refuse_distinct_on(query)
    values = [stage.lower(item.node) for item in clauses.items]
    texts = [normalised(v) if clauses.distinct else v.sql for v in values]
    columns = [f"{sql} AS c{i}" for i, sql in enumerate(texts)]
    named = zip(clauses.items, values, strict=True)
    outputs = tuple(Output(item.name, v.type, f"c{i}") for i, (item, v) in enumerate(named))
    if not clauses.order:
        return Text(_select(columns, clauses, stage) + limits(query), outputs)
    alias = context.alias()
    keys, hidden = _sort(stage, clauses, outputs, alias)
    inner = _select([*columns, *hidden], clauses, stage)
    names = ", ".join(f"{alias}.{o.column}" for o in outputs)
    order = f"ORDER BY {', '.join(keys)}{limits(query)}"
    return Text(f"SELECT {names} FROM ({inner}) AS {alias} {order}", outputs)


def _refuse_distinct_on(query: exp.Select) -> None:
    distinct = query.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise not_understood("DISTINCT ON", _DISTINCT_ON)


def _select(columns: Sequence[str], clauses: Clauses, stage: Stage) -> str:
    return f"SELECT {'DISTINCT ' if clauses.distinct else ''}{', '.join(columns)} FROM {stage.sql}"


def _sort(
    stage: Stage, clauses: Clauses, outputs: Sequence[Output], alias: str
) -> tuple[list[str], list[str]]:
    """The sort keys over the outputs, which are called `alias`, and the columns beside the outputs
    that they need.

    With DISTINCT a key is made of outputs; otherwise one that is no output itself is computed with
    them.
    """
    known = {
        text_of(item.node): column_of(f"{alias}.{output.column}", output.type)
        for item, output in zip(clauses.items, outputs, strict=True)
    }
    above = replace(stage, values=known, missing=_NO_OUTPUT)
    keys: list[str] = []
    hidden: list[str] = []
    for key in clauses.order:
        if clauses.distinct:
            sql = above.lower(key.this).sql
        elif text_of(key.this) in known:
            sql = known[text_of(key.this)].sql
        else:
            sql = f"{alias}.o{len(hidden)}"
            hidden.append(f"{stage.lower(key.this).sql} AS o{len(hidden)}")
        keys.append(f"{sql} {direction(key)}")
    return keys, hidden
