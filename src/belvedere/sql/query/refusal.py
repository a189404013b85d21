"""What a query may not contain here, refused by its name and with the way around."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported

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
    "connect": "CONNECT BY",
    "into": "INTO",
    "cube": "CUBE",
    "rollup": "ROLLUP",
    "grouping_sets": "GROUPING SETS",
    "totals": "WITH TOTALS",
    "by_name": "UNION BY NAME",
    "recursive": "WITH RECURSIVE",
    "version": "VERSION AS OF",
    "when": "TIMESTAMP AS OF",
    "joins": "a join in parentheses",
}
_PLACEHOLDER = re.compile(r"_(?:bound|value)\.\w+")


class NotAnswered(SqlError):
    """A query that Spark understands and this module does not."""

    def __init__(self, construct: str, instead: str = "") -> None:
        self.construct, self.instead = construct, instead
        way = f", or {instead}" if instead else ""
        super().__init__(f"{construct} is not answered here: use .to_spark(), which runs the query in Spark{way}")


def only(node: exp.Expr, known: Iterable[str]) -> None:
    """Refuse a node on which anything else than `known` is set."""
    for name, value in node.args.items():
        if value not in (None, [], False, "") and name not in known:
            raise NotAnswered(_WORDS.get(name, f"{name.strip('_').upper()} of {type(node).__name__.upper()}"))


def reworded(error: SqlError, names: Mapping[str, str]) -> SqlError:
    """The error in the user's words: `names` says what our names for columns and values stand for."""

    def words(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: names.get(match[0], match[0]), text)

    if isinstance(error, Unsupported | NotAnswered):
        return NotAnswered(words(error.construct), words(error.instead))
    return SqlError(words(str(error)))
