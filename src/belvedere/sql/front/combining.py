"""UNION, INTERSECT and EXCEPT: which it is, and the columns of both sides side by side."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import common_type
from belvedere.sql.front.purpose import Purpose
from belvedere.types import SqlType

Word = Literal["UNION", "INTERSECT", "EXCEPT"]
_WORDS: dict[type[exp.Expr], Word] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


def word_of(query: exp.SetOperation, purpose: Purpose) -> Word:
    word = _WORDS.get(type(query))
    if word is None:
        raise purpose.refused(type(query).__name__.upper())
    return word


def keeps_copies(query: exp.SetOperation) -> bool:
    """Whether ALL is written."""
    return query.args.get("distinct") is False


def check_widths(word: Word, left: int, right: int) -> None:
    if left != right:
        raise SqlError(f"{word} needs as many columns on both sides: {left} and {right}")


def column_type(left: SqlType | None, right: SqlType | None) -> SqlType | None:
    """The type of a column of the result; None if it is an untyped NULL on both sides."""
    return None if left is None and right is None else common_type([left, right])
