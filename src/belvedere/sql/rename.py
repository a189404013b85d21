"""A query over other names, for Spark: its relations are defined in front of it, and its text stays
the user's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from belvedere.sql.dialect import TokenType, words_of, written
from belvedere.sql.names import backquoted


def renamed(query: Any, names: Mapping[str, str]) -> str:
    """The text of the query with a WITH around it that says what its relations are; a WITH of its
    own hides them, as it should.

    The parser's tree is not written out again: it reads more than Spark does, so a mistake of it
    would be computed by both.
    """
    text = _guarded(written(query)).rstrip().rstrip(";")
    relations = ", ".join(
        f"{backquoted(name)} AS (SELECT * FROM {other})" for name, other in names.items()
    )
    return f"WITH {relations} (\n{text}\n)" if relations else text


def _guarded(text: str) -> str:
    """For Spark t WHERE (b) is a table with the alias WHERE and one column b; t WHERE true AND (b)
    is what is meant.
    """
    words = words_of(text)
    kinds = [word.token_type for word in words]
    for at in reversed(range(len(words) - 3)):
        if (
            kinds[at : at + 2] == [TokenType.WHERE, TokenType.L_PAREN]
            and kinds[at + 3] == TokenType.R_PAREN
        ):
            text = f"{text[: words[at].end + 1]} true AND{text[words[at].end + 1 :]}"
    return text
