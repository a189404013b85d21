"""Names of relations of sources in statements: `shop.orders` becomes one quoted name, before
anything else looks at the statement.

    FROM shop.orders              FROM `shop.orders` AS `orders`
    FROM shop.orders o            FROM `shop.orders` o
    shop.orders.id                `orders`.id

So what follows, Spark too, knows relations by one name, and columns by the name behind the dot.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

_QUERY_PLACES = (exp.From, exp.Join, exp.Subquery)


def with_plain_names(tree: exp.Expr, text: str) -> str:
    """The text that the tree was parsed from, with dotted names of relations as plain ones."""
    edits = sorted([*_of_tables(tree), *_of_columns(tree)], reverse=True)
    for start, end, instead in edits:
        text = text[:start] + instead + text[end:]
    return text


def _of_tables(tree: exp.Expr) -> Iterator[tuple[int, int, str]]:
    for table in tree.find_all(exp.Table):
        if _is_dotted(table):
            alias = "" if _has_own_name(table) else f" AS {_quoted(table.name)}"
            yield *_span(table.parts), _quoted(_dotted(table.parts)) + alias


def _is_dotted(table: exp.Table) -> bool:
    """But what a CREATE makes is nobody else's."""
    around = table.find_ancestor(exp.Create)
    made = around.this if around is not None else None
    is_made = made is table or (isinstance(made, exp.Schema) and made.this is table)
    return bool(table.args.get("db")) and isinstance(table.this, exp.Identifier) and not is_made


def _has_own_name(table: exp.Table) -> bool:
    """An alias, or no need for one; VERSION AS OF stands before it and is taken out first."""
    is_read = isinstance(table.parent, _QUERY_PLACES)
    return not is_read or bool(table.args.get("alias") or table.args.get("version"))


def _of_columns(tree: exp.Expr) -> Iterator[tuple[int, int, str]]:
    """Columns with the whole name of a relation in front of theirs."""
    named = {
        _dotted(table.parts).lower() for table in tree.find_all(exp.Table) if _is_dotted(table)
    }
    for column in tree.find_all(exp.Column):
        front = column.parts[:-1]
        if len(front) > 1 and _dotted(front).lower() in named:
            yield *_span(front), _quoted(front[-1].name)


def _dotted(parts: list[exp.Expr]) -> str:
    names = [part.name for part in parts]
    return ".".join(names)


def _span(parts: list[exp.Expr]) -> tuple[int, int]:
    return int(parts[0].meta["start"]), int(parts[-1].meta["end"]) + 1


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
