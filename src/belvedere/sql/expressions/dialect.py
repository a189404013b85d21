"""Spark's SQL dialect for sqlglot, with two corrections.

In Spark a doubled quote inside a string is that quote: 'It''s' is It's, where sqlglot's "spark" reads
'It' 's' and so Its. And sqlglot forgets a unary plus, which in Spark turns a string into a number.
Parse views with `read=SparkSql`.
"""

from __future__ import annotations

from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from belvedere.errors import SqlError


def _positive(parser: Parser) -> exp.Expr:
    return exp.Anonymous(this="positive", expressions=[parser._parse_unary()])


class SparkSql(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    class Parser(SparkParser):
        UNARY_PARSERS: ClassVar = {**SparkParser.UNARY_PARSERS, TokenType.PLUS: _positive}


def parse(text: str) -> exp.Expr:
    """One scalar expression."""
    try:
        return sqlglot.parse_one(text, read=SparkSql)
    except (ParseError, TokenError) as error:
        raise SqlError(f"cannot read the expression {text!r}: {error}") from error
