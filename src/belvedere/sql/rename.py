"""A query over other names: relations renamed, each still known to the query by its own name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from belvedere.sql.dialect import sql_of


def renamed(query: Any, names: Mapping[str, str]) -> str:
    """The text of the query with relations replaced as `names` says (compared without case)."""
    wanted = {name.lower(): other for name, other in names.items()}

    def swap(node: Any) -> Any:
        if isinstance(node, exp.Table) and not node.db and node.name.lower() in wanted:
            alias = node.alias_or_name
            table = exp.to_table(wanted[node.name.lower()])
            return exp.alias_(table, alias, table=True)
        return node

    return sql_of(query.copy().transform(swap))
