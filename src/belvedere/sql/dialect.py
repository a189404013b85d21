"""Statements in Spark's SQL dialect: parsed, split, and cut out as the user wrote them."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.tokenizer_core import Token, TokenType

from belvedere.errors import SqlError
from belvedere.expressions import check_tree, check_words, with_room
from belvedere.expressions.dialect import SparkSql
from belvedere.sql.relation_names import with_plain_names

__all__ = [
    "Token",
    "TokenType",
    "blanked",
    "check_query_at",
    "defining_query",
    "parse",
    "query_start",
    "split",
    "sql_of",
    "words_of",
    "written",
]

_TEXT = "text"
# it warns about statements that we read ourselves
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class _Words(SparkSql):
    """As SparkSql, but what follows SHOW and EXPLAIN is words too, not one text up to the next
    semicolon.
    """

    class Tokenizer(SparkSql.Tokenizer):
        COMMANDS: ClassVar = set()


@with_room
def parse(text: str) -> Any:
    """One statement as a sqlglot tree, in which relations of sources have plain names."""
    found = _parsed(text)
    plain = with_plain_names(found, text)
    return found if plain == text else _parsed(plain)


def _parsed(text: str) -> Any:
    check_words(words_of(text))
    try:
        statements = [s for s in sqlglot.parse(text, dialect=SparkSql) if s is not None]
    except (ParseError, TokenError) as error:
        raise _invalid(error) from error
    if not statements:
        raise SqlError("there is no statement in this text")
    if len(statements) > 1:
        raise SqlError(f"one statement at a time, please: found {len(statements)}")
    check_tree(statements[0])
    statements[0].meta[_TEXT] = text
    return statements[0]


def written(statement: Any) -> str:
    """A statement from `parse` as the user wrote it."""
    return str(statement.meta[_TEXT])


def check_query_at(text: str, start: int) -> None:
    """Raise what is wrong with the query that stands in a text from `start` on, with its line and
    column in the whole text.
    """
    parse(blanked(text, start))


def blanked(text: str, end: int) -> str:
    """The text with spaces up to `end`, so that the places of the rest stay."""
    return re.sub(r"[^\n]", " ", text[:end]) + text[end:]


def words_of(text: str) -> list[Token]:
    """The words and signs of a text, without comments."""
    if not isinstance(text, str):
        raise SqlError(f"a statement is text: pass a str, not {type(text).__name__}")
    return list(_words(text))


@lru_cache(maxsize=4)  # several steps look at the words of one statement, which may be long
def _words(text: str) -> tuple[Token, ...]:
    try:
        return tuple(sqlglot.tokenize(text, dialect=_Words))
    except TokenError as error:
        raise _invalid(error) from error


def split(text: str) -> list[str]:
    """The statements of a script, as the user wrote them; a part with
    nothing but comments is none.
    """
    parts, start, empty = [], 0, True
    for word in words_of(text):
        if word.token_type == TokenType.SEMICOLON:
            parts += [] if empty else [text[start : word.start]]
            start, empty = word.end + 1, True
        else:
            empty = False
    return [part.strip() for part in [*parts, *([] if empty else [text[start:]])]]


def defining_query(text: str) -> str:
    """The SELECT of a CREATE ... AS SELECT statement, as the user wrote it."""
    start = query_start(text)
    if start is None:
        raise SqlError(
            "the statement has no AS SELECT part: write CREATE MATERIALIZED VIEW v AS SELECT ..."
        )
    return text[start:].strip().rstrip(";").strip()


def query_start(text: str) -> int | None:
    """Where the SELECT of a CREATE ... AS SELECT statement begins."""
    depth = 0
    for word in words_of(text):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(word.token_type, 0)
        if word.token_type == TokenType.ALIAS and depth == 0:
            return int(word.end) + 1
    return None


class _Written(SparkSql):
    """As SparkSql, but QUALIFY stays QUALIFY: Spark knows it, and sqlglot's subquery for it gives
    out a column too many.
    """

    class Generator(SparkGenerator):
        TRANSFORMS: ClassVar = {
            node: rule for node, rule in SparkGenerator.TRANSFORMS.items() if node is not exp.Select
        }


@with_room
def sql_of(node: Any) -> str:
    return str(node.sql(dialect=_Written))


def _invalid(error: ParseError | TokenError) -> SqlError:
    """sqlglot's message without the names of its classes."""
    if isinstance(error, TokenError):
        mark = re.match(r"Missing (.+) from", str(error.__cause__))
        return SqlError(
            f"this is not valid SQL: {f'a {mark[1]}' if mark else 'a quote or a comment'} is opened"
            " and never closed"
        )
    found = error.errors[0]
    what, at = found["description"], found["highlight"]
    if match := re.match(r"Expected (.*) but got <Token .*?text: (.*?), line:", what, re.DOTALL):
        what = (
            f"a {match[1]} is missing after {at}"
            if match[2] == "SENTINEL"
            else f"a {match[1]} is expected, not {match[2]}"
        )
    elif what.startswith("Required keyword"):
        what = f"something is missing at {at}"
    elif what.startswith("Invalid expression"):
        what = f"{at} is not expected here"
    return SqlError(
        f"this is not valid SQL: {what} (line {found['line']}, column"
        f" {max(found['col'] - len(at) + 1, 1)})"
    )
