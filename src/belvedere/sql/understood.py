"""What is understood of a parsed statement: for every kind of node the arguments that something
here looks at.

The parser reads the SQL of many systems. What it reads and nobody looks at would be ignored in
silence, so a tree is checked as a whole before anything is made of it: an argument that is set and
not listed, or a node that has no business where it stands, is refused. Rules of expressions list
what they consume themselves (`expressions.rules`); clauses, relations and statements stand here.

    check(query, purpose)          views and ad hoc queries, each with what only one of them
                                   consumes
    consumed(node, "statement")    statements, which look at their parts one by one

An argument that is looked at only to refuse it with words of its own is listed too.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import consumed_by_rule, is_function, written_of
from belvedere.sql.front.parentheses import is_parenthesised
from belvedere.sql.front.purpose import Purpose

_SET_OPERATION = "with_ this expression distinct order limit"
_EVERYWHERE: dict[type[exp.Expr], str] = {
    exp.Select: "with_ expressions distinct from_ joins where group having order limit",
    exp.Union: _SET_OPERATION,
    exp.Intersect: _SET_OPERATION,
    exp.Except: _SET_OPERATION,
    exp.With: "expressions",
    exp.CTE: "this alias",
    exp.From: "this",
    exp.Join: "this on using side kind method",
    exp.Values: "expressions alias",
    exp.TableAlias: "this columns",
    exp.Where: "this",
    exp.Group: "expressions all cube rollup grouping_sets",
    exp.Cube: "expressions",
    exp.Rollup: "expressions",
    exp.GroupingSets: "expressions",
    exp.Having: "this",
    exp.Order: "expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression",
    exp.Alias: "this alias",
    exp.Star: "",
    exp.Column: "this table",
    exp.Identifier: "this quoted",
    exp.Var: "this",
    exp.Filter: "this expression",
    exp.Exists: "this",
    exp.In: "this expressions query",
    exp.Tuple: "expressions",
    exp.Window: "this partition_by order over alias",
    exp.Count: "this expressions big_int",
    exp.Sum: "this",
    exp.Avg: "this",
    exp.Min: "this expressions",
    exp.Max: "this expressions",
    exp.CountIf: "this",
    exp.RowNumber: "",
    exp.Rank: "",
    exp.DenseRank: "",
    exp.Interval: "this unit",
    exp.DataType: "this expressions nested",
    exp.DataTypeParam: "this",
    exp.Anonymous: "this expressions",
}
_ONLY: dict[str, dict[type[exp.Expr], str]] = {
    "view": {
        exp.Select: "qualify",
        exp.Qualify: "this",
        exp.With: "recursive",
        exp.Window: "spec",
        exp.WindowSpec: "*",
    },
    # A hint changes how Spark computes, not what.
    "query": {
        **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), "offset"),
        exp.Select: "offset hint",
        exp.Offset: "expression",
        exp.Star: "except_",
        exp.Hint: "*",
    },
}
STATEMENTS: dict[type[exp.Expr], str] = {
    exp.Create: "this kind exists replace properties expression",
    exp.Drop: "this tables kind exists materialized restrict",
    exp.Describe: "this kind",
    exp.Refresh: "this kind",
    exp.Insert: "this expression overwrite",
    exp.Update: "this expressions where",
    exp.Delete: "this where tables",
    exp.Values: "expressions",
    exp.Table: "this db catalog alias",
    exp.TableAlias: "this",
    exp.ColumnDef: "this kind constraints",
    exp.PrimaryKey: "expressions include",
    exp.IndexParameters: "",
    exp.NotNullColumnConstraint: "allow_null",
    exp.PrimaryKeyColumnConstraint: "",
}
_LONGEST = 200  # characters of a construct in a message
# Aggregates of Spark that the parser takes for scalar functions.
_AGGREGATES = (
    "any any_value approx_percentile bit_and bit_or bit_xor bool_and bool_or count_min_sketch every"
    " first_value histogram_numeric kurtosis last_value listagg max_by mean median min_by mode"
    " percentile percentile_approx regr_count skewness some std string_agg try_avg try_sum"
)
AGGREGATES = frozenset(_AGGREGATES.split())
_RELATIONS = (exp.Table, exp.Subquery, exp.Values, exp.Lateral, exp.Unnest)
_ENDS = "this with_ order limit"
# What may stand in an argument, where it is not an expression.
_PLACES: dict[tuple[type[exp.Expr], str], tuple[type[exp.Expr], ...]] = {
    (exp.Select, "with_"): (exp.With,),
    (exp.Select, "distinct"): (exp.Distinct,),
    (exp.Select, "from_"): (exp.From,),
    (exp.Select, "joins"): (exp.Join,),
    (exp.Select, "where"): (exp.Where,),
    (exp.Select, "group"): (exp.Group,),
    (exp.Select, "having"): (exp.Having,),
    (exp.Select, "qualify"): (exp.Qualify,),
    (exp.Select, "order"): (exp.Order,),
    (exp.Select, "limit"): (exp.Limit,),
    (exp.Select, "offset"): (exp.Offset,),
    (exp.Subquery, "with_"): (exp.With,),
    (exp.Subquery, "alias"): (exp.TableAlias,),
    (exp.Subquery, "joins"): (exp.Join,),
    (exp.Subquery, "order"): (exp.Order,),
    (exp.Subquery, "limit"): (exp.Limit,),
    (exp.Subquery, "offset"): (exp.Offset,),
    (exp.Table, "alias"): (exp.TableAlias,),
    (exp.Table, "joins"): (exp.Join,),
    (exp.With, "expressions"): (exp.CTE,),
    (exp.CTE, "alias"): (exp.TableAlias,),
    (exp.From, "this"): _RELATIONS,
    (exp.Join, "this"): _RELATIONS,
    (exp.Join, "using"): (exp.Identifier, exp.Column),
    (exp.Order, "expressions"): (exp.Ordered,),
    (exp.Exists, "this"): (exp.Query,),
    (exp.In, "query"): (exp.Query,),
    (exp.Filter, "expression"): (exp.Where,),
}
_PLACES |= {
    (kind, name): _PLACES[exp.Select, name]
    for kind in (exp.Union, exp.Intersect, exp.Except)
    for name in ("with_", "order", "limit", "offset")
}
# Refused by their own words wherever they stand, with all that is in them.
_REFUSED = (exp.Lateral, exp.Unnest, exp.Aliases, exp.Values, exp.Insert, exp.Update, exp.Delete)


def check(tree: exp.Expr, purpose: Purpose) -> None:
    """Refuse a query in which anything is written that nothing would look at."""
    for node in tree.dfs(prune=_is_closed):
        known = consumed(node, purpose.name)
        if known is None or _is_foreign_call(node):
            raise purpose.refused_node(node)
        if isinstance(node, exp.Column) and (node.args.get("db") or node.args.get("catalog")):
            raise SqlError(
                f"there is no column {written_of(node)}: a table alone may stand in front of a"
                " column's name"
            )
        for name, value in node.args.items():
            if is_set(value) and name not in known and "*" not in known:
                raise purpose.refused_argument(node, name)
            _check_place(node, name, value, purpose)


def consumed(node: exp.Expr, purpose: str) -> frozenset[str] | None:
    """The arguments of a node that something looks at; None if nothing knows such a node."""
    kind = type(node)
    if purpose == "statement" and kind in STATEMENTS:
        return frozenset(STATEMENTS[kind].split())
    if kind is exp.Subquery:
        return frozenset(_of_subquery(node, purpose).split())
    if kind is exp.Table:
        return frozenset(("this alias db catalog" + (" joins" if _is_inside(node) else "")).split())
    if kind is exp.Group and node.args.get("expressions"):
        return frozenset(["expressions", "cube", "rollup", "grouping_sets"])
    if kind is exp.Distinct:
        return frozenset(["on" if isinstance(node.parent, exp.Select) else "expressions"])
    if _is_closed(node):
        return frozenset("*")
    only = _ONLY.get(purpose, {})
    if kind in _EVERYWHERE or kind in only:
        return frozenset(f"{_EVERYWHERE.get(kind, '')} {only.get(kind, '')}".split())
    if isinstance(node.parent, exp.Window) and node.arg_key == "this":
        return frozenset("*")  # the function before OVER is refused with the whole window
    return consumed_by_rule(kind)


def _is_foreign_call(node: exp.Expr) -> bool:
    """Whether a function is called of which the rules of expressions know nothing; in FROM and
    before OVER others say so.
    """
    elsewhere = isinstance(node.parent, exp.Table | exp.Window) and node.arg_key == "this"
    return isinstance(node, exp.Anonymous) and not elsewhere and not is_function(str(node.this))


def is_set(value: Any) -> bool:
    return value not in (None, [], False, "")


def written_part(node: exp.Expr, name: str) -> str:
    """What the user wrote for an argument, as far as the tree tells: its own text if it has one,
    else that of the whole node.
    """
    value = node.args[name]
    if name == "locks":
        return "FOR UPDATE or FOR SHARE"
    if isinstance(node, exp.Select) and name == "kind":
        return f"SELECT AS {value}"
    if isinstance(node, exp.SetOperation) and name in ("side", "kind", "on"):
        return " ".join(
            filter(None, (node.args.get("side"), node.args.get("kind"), node.key.upper()))
        )
    parts = [
        part
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, exp.Expr)
    ]
    whole = isinstance(node, exp.Table | exp.Limit | exp.Subquery | exp.Star) or not parts
    text = written_of(node) if whole else ", ".join(map(written_of, parts))
    return _shortened(text.strip()) or name.strip("_").upper()


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _of_subquery(node: exp.Expr, purpose: str) -> str:
    """A relation in FROM may have a name, and joins if parentheses stand around both; a query may
    have a WITH and an end.
    """
    if _is_inside(node):
        return "this alias joins"
    if isinstance(node.parent, exp.From | exp.Join):
        return "this alias"
    return f"{_ENDS} offset" if purpose == "query" else _ENDS


def _is_inside(node: exp.Expr) -> bool:
    """Whether a relation is the first one in parentheses."""
    return node.parent is not None and is_parenthesised(node.parent)


def _is_closed(node: exp.Expr) -> bool:
    compares = isinstance(node, exp.Any | exp.All) and isinstance(node.this, exp.Query)
    return compares or isinstance(node, (*_REFUSED, exp.Hint))


def _check_place(node: exp.Expr, name: str, value: Any, purpose: Purpose) -> None:
    allowed = _PLACES.get((type(node), name))
    if allowed is None:
        return
    for part in value if isinstance(value, list) else [value]:
        if is_set(part) and not isinstance(part, allowed):
            raise purpose.refused_argument(node, name)
