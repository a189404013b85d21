"""What a query may not contain here, refused by its name and with the way around."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import UnknownFunction, called, unknown, written_of
from belvedere.sql.understood import AGGREGATES, Purpose, written_part

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
_PLACEHOLDER = re.compile(r"_(?:bound|value)\.\w+")


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


def _refused_argument(node: exp.Expr, name: str) -> SqlError:
    if name in _WORDS:
        return NotAnswered(_WORDS[name])
    return (
        _refused_node(node)
        if isinstance(node, exp.Func)
        else not_understood(written_part(node, name))
    )


def _refused_node(node: exp.Expr) -> SqlError:
    if isinstance(node, exp.Placeholder | exp.Parameter):
        return not_understood(written_of(node), "write the value itself")
    if isinstance(node, exp.AggFunc) or called(node).lower() in AGGREGATES:
        return NotAnswered(f"the aggregate {written_of(node)}", "use count, sum, avg, min or max")
    return _answered_elsewhere(unknown(node))


QUERY = Purpose("query", _refused_argument, _refused_node)


def _answered_elsewhere(error: Unsupported) -> SqlError:
    """A refusal of the rules of expressions, for a query: Spark may know more."""
    if isinstance(error, UnknownFunction) and not is_in_spark(error.name):
        return SqlError(
            f"there is no function {error.name} in Spark's SQL: docs/sql.md lists those that are"
            " answered here"
        )
    return NotAnswered(error.construct, error.instead)


def refused_function(node: exp.Expr) -> SqlError:
    """A function in FROM."""
    known = called(node).lower() in _TABLE_FUNCTIONS
    construct = f"{written_of(node)} in FROM"
    return NotAnswered(construct) if known else not_understood(construct)


def is_in_spark(function: str) -> bool:
    """Whether Spark has a function of this name. Asked only after a refusal: the import is slow."""
    from pyspark.sql import functions

    return hasattr(functions, function.lower())


def reworded(error: SqlError, names: Mapping[str, str]) -> SqlError:
    """The error in the user's words: `names` says what our names for
    columns and values stand for.
    """

    def words(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: names.get(match[0], match[0]), text)

    if isinstance(error, UnknownFunction):
        return _answered_elsewhere(error)
    if isinstance(error, Unsupported | NotAnswered):
        return NotAnswered(words(error.construct), words(error.instead))
    return SqlError(words(str(error)))
