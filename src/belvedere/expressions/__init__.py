"""Scalar expressions: Spark's ANSI meaning, DuckDB's text.

    lower(parse("price * 2 > 10"), resolve)  ->  Typed(sql, type, raises, ...)

Lowered text assumes a connection from `connect()`: time zone UTC, the optimizers off that move or
drop errors, and the macros of upper and lower. Views are parsed with `SparkSql`. `SUPPORTED` is the
allow-list; what is not on it raises `Unsupported`. Where evaluation raises, TRY({'v': <sql>}) IS
NULL finds the rows.
"""

from belvedere.expressions.casts import cast_to
from belvedere.expressions.coercion import aggregate_type, common_type
from belvedere.expressions.depth import check_tree, check_words, with_room
from belvedere.expressions.dialect import SparkSql, called, parse, written_of
from belvedere.expressions.engine import connect
from belvedere.expressions.lowering import (
    UnknownFunction,
    consumed_by_rule,
    is_function,
    is_volatile,
    lower,
    lower_condition,
    sql_type,
    unknown,
)
from belvedere.expressions.predicates import all_of
from belvedere.expressions.supported import SUPPORTED, Supported
from belvedere.expressions.typed import Resolver, Typed, raise_sql

__all__ = [
    "SUPPORTED",
    "Resolver",
    "SparkSql",
    "Supported",
    "Typed",
    "UnknownFunction",
    "aggregate_type",
    "all_of",
    "called",
    "cast_to",
    "check_tree",
    "check_words",
    "common_type",
    "connect",
    "consumed_by_rule",
    "is_function",
    "is_volatile",
    "lower",
    "lower_condition",
    "parse",
    "raise_sql",
    "sql_type",
    "unknown",
    "with_room",
    "written_of",
]
