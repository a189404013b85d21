"""What is not maintained, refused by the name of the construct and with the way around."""

from __future__ import annotations

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.sql.binding import text_of

_SORT = "leave it out of the view and sort when you read it"
_KEY = "use WITH (key = '...') to choose the view's key"
_CLAUSES = {
    "laterals": ("LATERAL VIEW", ""),
    "pivots": ("PIVOT", ""),
    "windows": ("a WINDOW clause", "write its definition in OVER (...)"),
    "sort": ("SORT BY", _SORT),
    "cluster": ("CLUSTER BY", _KEY),
    "distribute": ("DISTRIBUTE BY", _KEY),
    "offset": ("OFFSET", "leave it out of the view and use it when you read it"),
    "sample": ("TABLESAMPLE", ""),
    "connect": ("CONNECT BY", ""),
    "into": ("INTO", ""),
    "hint": ("a hint", "leave it out"),
    "by_name": ("UNION BY NAME", "list the columns in the same order"),
}
_GROUPING = {"cube": "CUBE", "rollup": "ROLLUP", "grouping_sets": "GROUPING SETS", "totals": "WITH TOTALS"}
_PLACES = {"WHERE": "inside another condition", "ON": "in ON"}
_INSTEAD = {
    "WHERE": "write it as a condition of its own in WHERE, without OR around it",
    "ON": "write it in WHERE, or join with the subquery in FROM",
    "": "join with the subquery in FROM, where an equality connects them",
}


def refuse_clauses(query: exp.Expr) -> None:
    for name, (construct, instead) in _CLAUSES.items():
        if query.args.get(name):
            raise Unsupported(construct, instead)
    if query.args.get("order") and not query.args.get("limit"):
        raise Unsupported("ORDER BY without LIMIT", _SORT)
    if query.args.get("limit") and not query.args.get("order"):
        raise Unsupported("LIMIT without ORDER BY", "say with ORDER BY which rows to keep, or limit when you read the view")
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Expr) and distinct.args.get("on"):
        raise Unsupported("DISTINCT ON", "use QUALIFY ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) = 1")


def refuse_grouping(group: exp.Expr) -> None:
    for name, construct in _GROUPING.items():
        if group.args.get(name):
            raise Unsupported(construct, "create one view per grouping")
    for node in group.expressions:
        if isinstance(node, exp.Cube | exp.Rollup | exp.GroupingSets):
            construct = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else type(node).__name__.upper()
            raise Unsupported(construct, "create one view per grouping")


def is_membership(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def refuse_subqueries(node: exp.Expr, clause: str) -> None:
    """Subqueries stand in FROM, or are whole conditions of WHERE."""
    found = node.find(exp.Query, exp.Exists)
    while found is not None and isinstance(found.parent, exp.Exists | exp.In | exp.Any | exp.All | exp.Subquery) and found is not node:
        found = found.parent
    if found is None:
        return
    if isinstance(found, exp.Any | exp.All):
        raise Unsupported(f"{text_of(found)}", "use IN (SELECT ...), or EXISTS with the comparison in its WHERE")
    if is_membership(found):
        raise Unsupported(f"{text_of(found)} {_PLACES.get(clause, 'as a value')}", _way(clause))
    raise Unsupported(f"the scalar subquery {text_of(found)}", _INSTEAD[""])


def _way(clause: str) -> str:
    return _INSTEAD.get(clause, _INSTEAD[""])


def unknown_table(name: str) -> SqlError:
    return SqlError(f"there is no table {name}: SHOW TABLES lists them")
