"""Parentheses in FROM: (r), (a JOIN b ON ...), with an alias and without.

The parser hangs the joins of a pair of parentheses on the first relation inside, which is a table,
a subquery with an alias, or a pair of parentheses again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from sqlglot import exp


def is_parenthesised(node: exp.Expr) -> TypeGuard[exp.Subquery]:
    """Whether these are parentheses around relations, and not around a query."""
    if not isinstance(node, exp.Subquery):
        return False
    inner = node.this
    named = isinstance(inner, exp.Subquery) and bool(
        inner.args.get("alias") or inner.args.get("joins")
    )
    return (
        named or isinstance(inner, exp.Table | exp.Values | exp.Lateral) or is_parenthesised(inner)
    )


def joins_in(node: exp.Subquery) -> Sequence[exp.Join]:
    """The joins in parentheses, after the first relation, which is `node.this`."""
    return node.this.args.get("joins") or []
