"""Somebody who writes a table into a file anew after each commit, for the conformance suite.

The table lives in SQLite, which knows transactions and savepoints.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from belvedere.sources.base import Source
from belvedere.sources.registry import open_source

_MONEY = pa.decimal128(12, 2)
_COLUMNS = {
    "items": [("id", pa.int32()), ("part", pa.int32()), ("name", pa.string()), ("amount", _MONEY)],
    "accounts": [("id", pa.int32()), ("amount", pa.int32())],
}
_KEYS = {"items": "id, part", "accounts": "id"}


@dataclass
class FilesBackend:
    """One writer at a time, as files have it; all of them write one table."""

    directory: Path
    has_transactions: bool = False
    relation: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)

    def open(self, relation: str = "items") -> Source:
        self.relation = relation
        options = {
            "path": str(self.directory / f"{relation}.parquet"),
            "key": _KEYS[relation],
            "kept": str(self.directory / "kept"),
            "every": "0",
        }
        return open_source("files", "files", options)

    def writer(self) -> FilesWriter:
        return FilesWriter(self)

    def publish(self) -> None:
        """Written beside, and renamed."""
        schema = pa.schema(_COLUMNS[self.relation])
        rows = self.database.execute(f"SELECT * FROM {self.relation}").fetchall()
        arrays = [
            pa.array([_exact(row[at], kind) for row in rows], kind)
            for at, kind in enumerate(schema.types)
        ]
        part = self.directory / f"{self.relation}.part"
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), part)
        os.rename(part, self.directory / f"{self.relation}.parquet")


class FilesWriter:
    def __init__(self, backend: FilesBackend) -> None:
        self._backend = backend

    def run(self, *statements: str) -> None:
        backend = self._backend
        with backend.lock:
            for statement in statements:
                backend.database.execute(statement)
            if not backend.database.in_transaction:
                backend.publish()

    def close(self) -> None:
        """The database is its backend's."""


def _exact(value: Any, kind: pa.DataType) -> Any:
    """SQLite has no decimals: those here have few digits, which a double holds."""
    if value is None or not pa.types.is_decimal(kind):
        return value
    return Decimal(str(value)).quantize(Decimal("0.01"))
