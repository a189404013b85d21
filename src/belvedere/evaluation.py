"""Lowered expressions over Arrow batches, on DuckDB: one connection per thread, one thread per
connection.
"""

from __future__ import annotations

import threading

from belvedere.libraries import duckdb, pa

_local = threading.local()


def shared() -> duckdb.DuckDBPyConnection:
    """This thread's connection; making one costs about 30 ms, so it is kept."""
    if not hasattr(_local, "connection"):
        from belvedere.expressions.engine import connect  # and with it the rules of all functions

        _local.connection = connect()
    connection: duckdb.DuckDBPyConnection = _local.connection
    return connection


def evaluate(query: str, changes: pa.Table) -> pa.Table:
    """The result of a query over one Arrow table that it calls `changes`, rows in the table's
    order.
    """
    connection = shared()
    connection.register("changes", changes)
    try:
        return connection.sql(query).to_arrow_table()
    finally:
        connection.unregister("changes")
