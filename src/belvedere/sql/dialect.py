"""Statements in Spark's SQL dialect: parsed, split, and cut out as the user wrote them."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.generators.spark import SparkGenerator

from belvedere.errors import SqlError
from belvedere.sql.expressions.dialect import SparkSql

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that we read ourselves


def parse(text: str) -> Any:
    """One statement as a sqlglot tree."""
    try:
        statements = [s for s in sqlglot.parse(text, dialect=SparkSql) if s is not None]
    except (ParseError, TokenError) as error:
        raise SqlError(f"this is not valid SQL: {_first_line(error)}") from error
    if len(statements) != 1:
        raise SqlError(f"one statement at a time, please: found {len(statements)}")
    return statements[0]


def split(text: str) -> list[str]:
    """The statements of a script, as the user wrote them."""
    try:
        tokens = sqlglot.tokenize(text, dialect=SparkSql)
    except TokenError as error:
        raise SqlError(f"this is not valid SQL: {_first_line(error)}") from error
    parts, start = [], 0
    for token in tokens:
        if token.token_type == sqlglot.TokenType.SEMICOLON:
            parts.append(text[start : token.start])
            start = token.end + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def defining_query(text: str) -> str:
    """The SELECT of a CREATE ... AS SELECT statement, as the user wrote it."""
    depth = 0
    for token in sqlglot.tokenize(text, dialect=SparkSql):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.token_type == sqlglot.TokenType.ALIAS and depth == 0:
            return text[token.end + 1 :].strip().rstrip(";").strip()
    raise SqlError("the statement has no AS SELECT part")


class _Written(SparkSql):
    """As SparkSql, but QUALIFY stays QUALIFY: Spark knows it, and sqlglot's subquery for it gives out a column too many."""

    class Generator(SparkGenerator):
        TRANSFORMS: ClassVar = {node: rule for node, rule in SparkGenerator.TRANSFORMS.items() if node is not exp.Select}


def sql_of(node: Any) -> str:
    return str(node.sql(dialect=_Written))


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0].replace("\x1b[4m", "").replace("\x1b[0m", "")
