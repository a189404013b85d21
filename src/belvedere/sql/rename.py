"""A query over other names: relations renamed, each still known to the query by its own name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from belvedere.sql.dialect import sql_of


def renamed(query: Any, names: Mapping[str, str]) -> str:
    """The text of the query with relations replaced as `names` says (compared without case); a WITH name hides a relation."""
    wanted = {name.lower(): other for name, other in names.items()}
    tree = exp.Paren(this=query.copy())  # so that even the root has a parent in which it can be replaced

    def visit(node: Any, hidden: frozenset[str]) -> None:
        definitions = node.args.get("with_")
        for cte in definitions.expressions if definitions else []:
            visit(cte.this, hidden)
            hidden |= {cte.alias.lower()}
        if isinstance(node, exp.Table) and not node.db and node.name.lower() in wanted.keys() - hidden:
            alias, other = node.alias_or_name, exp.to_table(wanted[node.name.lower()])
            node.set("this", other.this)
            node.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        for child in list(node.iter_expressions()):
            if child is not definitions:
                visit(child, hidden)

    visit(tree, frozenset())
    return sql_of(tree.this)
