"""The DuckDB connection that lowered expressions run on: one per thread, one thread per connection."""

from __future__ import annotations

import threading

import duckdb
import pyarrow as pa

_SETTINGS = {
    "threads": 1,
    "TimeZone": "UTC",
    # All that lowered expressions need is linked in; nothing may ever be fetched.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": True,
    # They move constants across comparisons, so that i + 1 > 0 no longer overflows, and fold constants that raise before
    # TRY can catch them. Whether a row raises must depend on the row alone (rules R5, R9).
    "disabled_optimizers": "expression_rewriter,statistics_propagation",
}
_local = threading.local()
_prelude: dict[str, None] = {}


def require(*statements: str) -> None:
    """Have every connection run these first: macros that lowered text calls, named by the SQL layer when it is imported."""
    _prelude.update(dict.fromkeys(statements))


def connect() -> duckdb.DuckDBPyConnection:
    """A private in-memory database with one thread and the time zone UTC, as lowered text assumes."""
    connection = duckdb.connect(":memory:")
    for name, value in _SETTINGS.items():
        connection.execute(f"SET {name} = {value!r}" if isinstance(value, str) else f"SET {name} = {str(value).lower()}")
    for statement in _prelude:
        connection.execute(statement)
    return connection


def shared() -> duckdb.DuckDBPyConnection:
    """This thread's connection; making one costs about 30 ms, so it is kept."""
    if not hasattr(_local, "connection"):
        _local.connection = connect()
    connection: duckdb.DuckDBPyConnection = _local.connection
    return connection


def evaluate(query: str, changes: pa.Table) -> pa.Table:
    """The result of a query over one Arrow table that it calls `changes`, rows in the table's order."""
    connection = shared()
    connection.register("changes", changes)
    try:
        return connection.sql(query).to_arrow_table()
    finally:
        connection.unregister("changes")
