"""How deep a statement may be nested, and room on the stack for all that is allowed.

Parser, planner and generator walk through trees by recursion, and so does DuckDB. A statement that
is nested deeper than `DEEPEST` is refused when it is parsed, so no step after that can fail because
of its depth. Conditions with AND and OR count by the logarithm of their length, because the parser
balances them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from belvedere.errors import SqlError

DEEPEST = 300
DUCKDB_DEPTH = 4000  # of its expressions: our text for one level has a few of them
# the parser takes about 25 for a pair of parentheses; frames of Python take no room on the stack of
# C
_FRAMES = 30_000
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_BEFORE = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_NESTED = {"ARRAY", "MAP", "STRUCT"}
_DEEPEST_TYPE = 20  # the parser reads a type in others again for each of them
_P = ParamSpec("_P")
_R = TypeVar("_R")
_lock = threading.Lock()
_inside, _before = 0, 0


def too_deep() -> SqlError:
    way = (
        "compute parts of it as columns of a subquery or of a view of their own, and use IN (...)"
        " for many values"
    )
    return SqlError(
        f"the statement is nested more than {DEEPEST} levels deep, or has an expression of as many"
        f" terms: {way}"
    )


def check_words(words: Sequence[Token]) -> None:
    """Refuse what the parser would go too deep for: parentheses, CASE, and signs one after the
    other.
    """
    depth, run, types, before = 0, 0, 0, ""
    for word in words:
        kind = word.token_type
        types = (
            types + 1
            if kind == TokenType.LT and before in _NESTED
            else max(0, types - (kind == TokenType.GT))
        )
        before = word.text.upper()
        run = run + 1 if kind in _BEFORE else 0
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth + run > DEEPEST or types > _DEEPEST_TYPE:
            raise too_deep()


def check_tree(tree: exp.Expr) -> None:
    waiting: list[tuple[exp.Expr, float]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise too_deep()
        waiting += [(child, depth + _step(node, child)) for child in node.iter_expressions()]


def _step(node: exp.Expr, child: exp.Expr) -> float:
    """A UNION of many queries is a long chain of plain ones, so it may be twice as long."""
    return 0.5 if isinstance(node, exp.SetOperation) and isinstance(child, exp.SetOperation) else 1


def with_room(work: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run it with a stack that is large enough for the deepest statement, wherever the caller
    stands.
    """

    @wraps(work)
    def run(*args: _P.args, **named: _P.kwargs) -> _R:
        _enter()
        try:
            return work(*args, **named)
        except RecursionError as error:
            raise too_deep() from error
        finally:
            _leave()

    return run


def _enter() -> None:
    global _inside, _before
    with _lock:
        if not _inside:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, _FRAMES))
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if not _inside:
            sys.setrecursionlimit(_before)
