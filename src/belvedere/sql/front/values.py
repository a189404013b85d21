"""Bound expressions lowered over the values that a back end has, with messages in the user's words.

A back end knows its values by the texts of their bound expressions (`binding`). While an expression
is lowered they are called `_value.v0`, `_value.v1`, ...; an error says what the user calls them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, lower
from belvedere.sql.front.binding import BOUND, VALUE, Values, over_values
from belvedere.sql.front.purpose import Purpose

_PLACEHOLDER = re.compile(rf"(?:{BOUND}|{VALUE})\.\w+")


def lower_over(
    node: exp.Expr, value_of: Values, missing: str, computed: bool, purpose: Purpose
) -> Typed:
    """A bound expression over values; `missing` and `computed` are as in `over_values`."""
    part, used = over_values(node, value_of, missing, computed)
    try:
        return lower(part, lambda column: used[int(column.name[1:])][1])
    except SqlError as error:
        names = {f"{VALUE}.v{i}": text for i, (text, _) in enumerate(used)}
        raise reword(error, names, purpose) from error


def reword(error: SqlError, names: Mapping[str, str], purpose: Purpose) -> SqlError:
    """The error in the user's words: `names` says what our names for columns and values stand
    for.
    """
    return purpose.reword(error, lambda text: in_words(text, names))


def in_words(text: str, names: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: names.get(match[0], match[0]), text)
