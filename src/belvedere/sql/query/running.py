"""Run a translated query over Arrow tables.

DuckDB may evaluate a condition before the one that guards it: where that raises, the query runs
once more with the conditions where they were written. It fails only if both orders fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import duckdb
import pyarrow as pa

from belvedere.errors import SqlError
from belvedere.evaluation import shared
from belvedere.expressions import connect
from belvedere.sql.query.context import relation_name
from belvedere.sql.query.refusal import NotAnswered
from belvedere.sql.query.translation import Translated

_MOVING = "filter_pushdown,filter_pullup,reorder_filter"
_CODE = re.compile(r"'((?:[A-Z]+_)+[A-Z]+: .*)' to [A-Z]", re.DOTALL)
_KIND = re.compile(r"^[A-Z][A-Za-z]+(?: [A-Za-z]+)* Error: ")
_TOO_LARGE = (
    re.compile(
        r"Type \w+ with value (\S+) can't be cast because the value is out of range for the"
        r" destination type (\w+)"
    ),
    re.compile(r'Casting value "(\S+)" to type (\S+) failed: value is out of range'),
    re.compile(r"Could not cast value (\S+) to (DECIMAL\S+)"),
)
_TYPES = {"INT32": "int", "INT64": "bigint"}
_SEVERAL = "a subquery that stands for one value gave more than one row"


def run(translated: Translated, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The result, with the names and types of `translated.schema`."""
    try:
        result = _evaluate(shared(), translated.sql, tables)
    except (
        duckdb.ConversionException,
        duckdb.OutOfRangeException,
        duckdb.InvalidInputException,
    ) as error:
        if " CROSS JOIN " in translated.sql:  # all pairs, when their condition may not move
            raise SqlError(f"the query failed: {readable(error)}") from error
        result = _unmoved(translated.sql, tables)
    except (duckdb.BinderException, duckdb.NotImplementedException) as error:
        raise NotAnswered(f"this query ({readable(error)})") from error
    except duckdb.Error as error:
        raise SqlError(f"the query failed: {readable(error)}") from error
    kinds = [column.type.arrow for column in translated.schema.columns]
    columns = [
        c if c.type == kind else c.cast(kind) for c, kind in zip(result.columns, kinds, strict=True)
    ]
    return pa.table(columns, schema=translated.schema.arrow)


def take(translated: Translated, name: str, batches: Iterable[pa.Table], count: int) -> pa.Table:
    """At least the first `count` rows of the answer, if there are so many, from as few batches of
    its only relation as give them.
    """
    found = [translated.schema.arrow.empty_table()]
    missing = count
    for batch in batches if count else ():
        found.append(run(translated, {name: batch}))
        missing -= found[-1].num_rows
        if missing <= 0:
            break
    return pa.concat_tables(found)


def _unmoved(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    with connect() as connection:
        (already,) = connection.sql("SELECT current_setting('disabled_optimizers')").fetchall()[0]
        connection.execute(
            f"SET disabled_optimizers = '{','.join(filter(None, (already, _MOVING)))}'"
        )
        try:
            return _evaluate(connection, sql, tables)
        except duckdb.Error as error:
            raise SqlError(f"the query failed: {readable(error)}") from error


def _evaluate(
    connection: duckdb.DuckDBPyConnection, sql: str, tables: Mapping[str, pa.Table]
) -> pa.Table:
    names = {relation_name(name): table for name, table in tables.items()}
    for name, table in names.items():
        connection.register(name, table)
    try:
        return connection.sql(sql).to_arrow_table()
    except RuntimeError as error:
        if "interrupted" in str(error):  # what DuckDB makes of Ctrl-C
            raise KeyboardInterrupt from error
        raise
    finally:
        for name in names:
            connection.unregister(name)


def readable(error: duckdb.Error) -> str:
    """What happened, without DuckDB's kind of error, the place in the text and the advice about
    casts.
    """
    text = str(error).split("\n\nLINE ")[0].strip()
    code = _CODE.search(text)
    if code:
        return code[1]
    for pattern in _TOO_LARGE:
        if match := pattern.search(text):
            return f"{match[1]} is out of range for {_TYPES.get(match[2], match[2].lower())}"
    if "More than one row returned by a subquery" in text:
        return _SEVERAL
    return _KIND.sub("", text.split("\n")[0])
