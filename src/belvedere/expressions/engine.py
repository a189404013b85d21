"""The DuckDB connection that lowered expressions run on."""

from __future__ import annotations

import duckdb

from belvedere.expressions.case_mapping import MACROS
from belvedere.expressions.depth import DUCKDB_DEPTH

_SETTINGS = {
    "threads": 1,
    "max_expression_depth": DUCKDB_DEPTH,
    "TimeZone": "UTC",
    # All that lowered expressions need is linked in; nothing may ever be fetched.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # The first moves what occurs twice out of CASE and TRY, and so raises for rows that are never
    # evaluated; the second turns i - 3 < 0 into i < 3, and so does not raise for rows where i - 3
    # overflows; the others evaluate constants while planning, where TRY cannot catch what these
    # raise (rule R9).
    "disabled_optimizers": (
        "common_subexpressions,expression_rewriter,statistics_propagation,in_clause"
    ),
}


def connect() -> duckdb.DuckDBPyConnection:
    """A private in-memory database with one thread and the time zone UTC and the macros, as lowered
    text assumes.
    """
    connection = duckdb.connect(":memory:")
    for name, value in _SETTINGS.items():
        connection.execute(
            f"SET {name} = {value!r}"
            if isinstance(value, str)
            else f"SET {name} = {str(value).lower()}"
        )
    for macro in MACROS:
        connection.execute(macro)
    return connection
