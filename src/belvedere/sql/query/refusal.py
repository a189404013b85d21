"""What a query may not contain here, refused by its name and with the way around."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import UnknownFunction, called, unknown, written_of
from belvedere.sql.front.binding import is_in_query, text_of
from belvedere.sql.front.purpose import Clause, Purpose
from belvedere.sql.understood import AGGREGATES, written_part

_WORDS = {
    "laterals": "LATERAL VIEW",
    "lateral": "LATERAL VIEW",
    "pivots": "PIVOT",
    "windows": "a WINDOW clause",
    "qualify": "QUALIFY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "TABLESAMPLE",
    "by_name": "UNION BY NAME",
    "recursive": "WITH RECURSIVE",
    "spec": "a window frame",
}
_TABLE_FUNCTIONS = {
    "explode",
    "explode_outer",
    "inline",
    "inline_outer",
    "json_tuple",
    "posexplode",
    "posexplode_outer",
    "range",
    "stack",
}


class NotAnswered(SqlError):
    """A query that Spark understands and this module does not."""

    def __init__(self, construct: str, instead: str = "") -> None:
        self.construct, self.instead = construct, instead
        way = f", or {instead}" if instead else ""
        super().__init__(
            f"{construct} is not answered here: use .to_spark(), which runs the query in Spark{way}"
        )


def not_understood(
    construct: str, instead: str = "leave it out, docs/sql.md lists what is answered"
) -> SqlError:
    """What Spark does not understand either, so that there is no other way to have it answered."""
    return SqlError(f"{construct} is not understood here: {instead}")


class _Query(Purpose):
    name = "query"
    aggregates = "use count, sum, avg, min or max"

    def refused(self, construct: str, instead: str = "") -> SqlError:
        return NotAnswered(construct, instead)

    def refused_argument(self, node: exp.Expr, name: str) -> SqlError:
        if name in _WORDS:
            return NotAnswered(_WORDS[name])
        if isinstance(node, exp.Func):
            return self.refused_node(node)
        return not_understood(written_part(node, name))

    def refused_node(self, node: exp.Expr) -> SqlError:
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return not_understood(written_of(node), "write the value itself")
        if isinstance(node, exp.AggFunc) or called(node).lower() in AGGREGATES:
            return NotAnswered(f"the aggregate {written_of(node)}", self.aggregates)
        return _answered_elsewhere(unknown(node))

    def refused_join(self, node: exp.Join) -> SqlError:
        if node.method not in ("", "NATURAL"):
            return not_understood(f"{node.method} JOIN", "write JOIN with ON or USING")
        if node.kind in ("SEMI", "ANTI"):
            return not_understood(
                f"{node.side} {node.kind} JOIN", f"write LEFT {node.kind} JOIN, with ON or USING"
            )
        return NotAnswered(text_of(node))

    def refused_relation(self, node: exp.Expr) -> SqlError:
        """A function in FROM, or what only Spark has there."""
        construct = f"{written_of(node.this)} in FROM"
        if not isinstance(node, exp.Table):
            return NotAnswered(f"{text_of(node)} in FROM")
        known = called(node.this).lower() in _TABLE_FUNCTIONS
        return NotAnswered(construct) if known else not_understood(construct)

    def reword(self, error: SqlError, words: Callable[[str], str]) -> SqlError:
        if isinstance(error, UnknownFunction):
            return _answered_elsewhere(error)
        if isinstance(error, Unsupported | NotAnswered):
            return NotAnswered(words(error.construct), words(error.instead))
        return SqlError(words(str(error)))

    def check_subqueries(self, node: exp.Expr, clause: Clause) -> None:
        """Each is computed before what it stands in (`computed`), where it is checked."""

    def value(self, node: exp.Expr) -> exp.Expr:
        """For x IN (SELECT ...) and its negation Spark gives FALSE where SQL has NULL."""
        inner = node.this if isinstance(node, exp.Not) else node
        if not is_in_query(inner.unnest()):
            return node
        return exp.Coalesce(this=node, expressions=[exp.false()])


QUERY = _Query()


def _answered_elsewhere(error: Unsupported) -> SqlError:
    """A refusal of the rules of expressions, for a query: Spark may know more."""
    if isinstance(error, UnknownFunction) and not is_in_spark(error.name):
        return SqlError(
            f"there is no function {error.name} in Spark's SQL: docs/sql.md lists those that are"
            " answered here"
        )
    return NotAnswered(error.construct, error.instead)


def is_in_spark(function: str) -> bool:
    """Whether Spark has a function of this name. Asked only after a refusal: the import is slow."""
    from pyspark.sql import functions

    return hasattr(functions, function.lower())
