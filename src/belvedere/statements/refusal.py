"""What INSERT, UPDATE and DELETE refuse, in their own words: the rules of expressions speak of
views.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from belvedere.errors import Unsupported
from belvedere.expressions import is_volatile
from belvedere.sql.refusal import Refused

_COMPUTED = "compute the value first, and write it as a literal"
_FIRST = "SELECT the values first, and write them as literals"


@contextmanager
def in_words_of(statement: str, node: Any, instead: str = _FIRST) -> Iterator[None]:
    """What the rules of expressions refuse, said of a statement: they speak of views.

    `instead` is the way around subqueries.
    """
    if node is not None and node.find(exp.Query, exp.Exists):
        raise Refused("a subquery", statement, instead)
    try:
        yield
    except Unsupported as error:
        changing = node is not None and any(map(is_volatile, node.walk()))
        raise Refused(
            error.construct, statement, _COMPUTED if changing else error.instead
        ) from error
