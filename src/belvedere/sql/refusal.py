"""Parts of a statement that would not be obeyed: refused by their name, with the way around."""

from __future__ import annotations

from sqlglot import exp

from belvedere.errors import Unsupported
from belvedere.sql.understood import consumed, is_set

_WORDS = {
    "order": "ORDER BY",
    "from_": "FROM",
    "with_": "WITH in front",
    "by_name": "BY NAME",
    "where": "REPLACE WHERE",
    "conflict": "ON CONFLICT",
    "alternative": "INSERT OR",
    "default": "DEFAULT VALUES",
    "source": "TABLE",
    "sample": "TABLESAMPLE",
    "version": "AS OF",
    "when": "AS OF",
    "joins": "JOIN",
    "position": "FIRST and AFTER",
    "desc": "DESC",
    "options": "NOT ENFORCED and the like",
    "style": "EXTENDED, FORMATTED or HISTORY",
}
_INSTEAD = {
    "limit": "say in WHERE which rows",
    "order": "say in WHERE which rows",
    "using": "say in WHERE which rows, by columns of the table itself",
    "from_": "set values that columns of the table itself give",
    "with_": "leave it out, or write it between INSERT INTO t and SELECT",
    "by_name": "list the columns after the table's name",
    "conflict": "a row with the same key is overwritten",
    "alternative": "a row with the same key is overwritten",
    "default": "give the values",
    "source": "write SELECT * FROM and the name",
    "returning": "SELECT the rows afterwards",
    "cascade": "drop the views that use it first",
}


class Refused(Unsupported):
    """A part of a statement that is understood but not done; the whole statement is refused."""

    def __init__(self, construct: str, statement: str, instead: str = "") -> None:
        super().__init__(construct, instead)
        self.args = (
            f"{construct} is not supported in {statement}" + (f": {instead}" if instead else ""),
        )


def only(node: exp.Expr, statement: str, *but: str) -> None:
    """Refuse a node of a statement on which anything is set that is not understood, or one of
    `but`.
    """
    known = consumed(node, "statement") or frozenset()
    for name, value in node.args.items():
        if is_set(value) and (name not in known or name in but):
            raise Refused(
                _WORDS.get(name, name.strip("_").replace("_", " ").upper()),
                statement,
                _INSTEAD.get(name, "leave it out"),
            )
