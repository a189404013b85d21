"""What is not maintained, refused by the name of the construct and with the way around."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import called, unknown, written_of
from belvedere.sql.front.binding import is_in_query, text_of
from belvedere.sql.front.conjuncts import conjuncts
from belvedere.sql.front.purpose import Clause, Purpose
from belvedere.sql.names import unknown_relation
from belvedere.sql.understood import AGGREGATES, written_part

_SORT = "leave it out of the view and sort when you read it"
_KEY = "use WITH (key = '...') to choose the view's key"
_NAMED = "name the columns"
_CLAUSES = {
    "laterals": ("LATERAL VIEW", ""),
    "pivots": ("PIVOT", ""),
    "windows": ("a WINDOW clause", "write its definition in OVER (...)"),
    "sort": ("SORT BY", _SORT),
    "cluster": ("CLUSTER BY", _KEY),
    "distribute": ("DISTRIBUTE BY", _KEY),
    "offset": ("OFFSET", "leave it out of the view and use it when you read it"),
    "connect": ("CONNECT BY", ""),
    "into": ("INTO", ""),
    "hint": ("a hint", "leave it out"),
    "by_name": ("UNION BY NAME", "list the columns in the same order"),
    "totals": ("WITH TOTALS", "create one view per grouping"),
    "except_": ("* EXCEPT", _NAMED),
    "replace": ("* REPLACE", _NAMED),
    "rename": ("* RENAME", _NAMED),
}
_AGGREGATES = "count, sum, avg, min, max and count(DISTINCT ...) are maintained"
_JOINS = "write JOIN, LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI JOIN, with ON or USING"
_CONNECTED = (
    "join with the subquery in FROM, grouped by the columns that connect it with this query"
)
_ALONE = "join with the subquery in FROM, by a constant column that both sides get"
_PLACES = {"WHERE": "inside another condition", "ON": "in ON"}
_INSTEAD = {
    "WHERE": "write it as a condition of its own in WHERE, without OR around it",
    "ON": "write it in WHERE, or join with the subquery in FROM",
    "": "join with the subquery in FROM, where an equality connects them",
}


class _View(Purpose):
    name = "view"
    grouping = "create one view per grouping"
    aggregates = _AGGREGATES

    def refused(self, construct: str, instead: str = "") -> SqlError:
        return Unsupported(construct, instead)

    def refused_argument(self, node: exp.Expr, name: str) -> SqlError:
        construct, instead = _CLAUSES.get(name, ("", ""))
        if construct:
            return Unsupported(construct, instead)
        if isinstance(node, exp.Func):
            return unknown(node)
        place = " in FROM" if isinstance(node, exp.Table | exp.Subquery) else ""
        return Unsupported(f"{written_part(node, name)}{place}", "leave it out")

    def refused_node(self, node: exp.Expr) -> SqlError:
        if isinstance(node, exp.AggFunc) or called(node).lower() in AGGREGATES:
            return Unsupported(f"the aggregate {written_of(node)}", _AGGREGATES)
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return Unsupported(written_of(node), "write the value itself")
        return unknown(node)

    def refused_join(self, node: exp.Join) -> SqlError:
        words = " ".join(filter(None, (node.method, node.side, node.kind)))
        return Unsupported(f"{words} JOIN", _JOINS)

    def refused_relation(self, node: exp.Expr) -> SqlError:
        if isinstance(node, exp.Lateral):
            instead = "join with a subquery that is grouped or ranked by the key"
            return Unsupported("LATERAL", instead)
        return Unsupported(f"{text_of(node)} in FROM")

    def reword(self, error: SqlError, words: Callable[[str], str]) -> SqlError:
        if isinstance(error, Unsupported):
            return Unsupported(words(error.construct), words(error.instead))
        return SqlError(words(str(error)))

    def check_subqueries(self, node: exp.Expr, clause: Clause) -> None:
        """Subqueries stand in FROM, or are whole conditions of WHERE."""
        _refuse_subqueries(node, clause)

    def conditions(self, node: exp.Expr | None) -> list[exp.Expr]:
        """Each conjunct is tested as far below as it can be."""
        return conjuncts(node)


VIEW = _View()


def refuse_ends(query: exp.Expr) -> None:
    """First rows need both an order and a number."""
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Expr) and distinct.args.get("on"):
        raise Unsupported(
            "DISTINCT ON", "use QUALIFY ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) = 1"
        )
    if query.args.get("order") and not query.args.get("limit"):
        raise Unsupported("ORDER BY without LIMIT", _SORT)
    if query.args.get("limit") and not query.args.get("order"):
        raise Unsupported(
            "LIMIT without ORDER BY",
            "say with ORDER BY which rows to keep, or limit when you read the view",
        )


def is_membership(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or is_in_query(node)


def _refuse_subqueries(node: exp.Expr, clause: Clause) -> None:
    found = node.find(exp.Query, exp.Exists)
    while (
        found is not None
        and isinstance(found.parent, exp.Exists | exp.In | exp.Any | exp.All | exp.Subquery)
        and found is not node
    ):
        found = found.parent
    if found is None:
        return
    if isinstance(found, exp.Any | exp.All):
        raise Unsupported(
            f"{text_of(found)}", "use IN (SELECT ...), or EXISTS with the comparison in its WHERE"
        )
    if is_membership(found):
        raise Unsupported(f"{text_of(found)} {_PLACES.get(clause, 'as a value')}", _way(clause))
    raise Unsupported(
        f"the scalar subquery {text_of(found)}", _CONNECTED if _refers_around(found) else _ALONE
    )


def _refers_around(query: exp.Expr) -> bool:
    """Whether a subquery names a relation that is not its own."""
    own = {table.alias_or_name.lower() for table in query.find_all(exp.Table, exp.Subquery)}
    return any(
        column.table and column.table.lower() not in own for column in query.find_all(exp.Column)
    )


def _way(clause: str) -> str:
    return _INSTEAD.get(clause, _INSTEAD[""])


def unknown_table(name: str) -> SqlError:
    if "." in name:
        return unknown_relation(name)
    return SqlError(f"there is no table {name}: SHOW TABLES lists them")
