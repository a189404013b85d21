"""Snapshots of files: the rows as they were, numbered from 1, each a Parquet file in a directory of
its own.

A snapshot is written beside its place, made durable, and renamed: a file of its name is whole. It
holds the look of the files that it was made of, so nothing else has to be written with it. Several
processes may use one directory: whoever holds the lock takes snapshots and forgets them.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belvedere.errors import SourceError, SourceLost, SourceUnreachable
from belvedere.libraries import duckdb
from belvedere.sources.files.options import Options
from belvedere.sources.files.reading import (
    FILE,
    Look,
    OtherColumns,
    connect,
    literal,
    look,
    quoted,
    rows,
)
from belvedere.types import Schema

_SUFFIX, _PART = ".parquet", ".part"
_TRIES = 5  # readings of files that change meanwhile


@dataclass(frozen=True, slots=True)
class Snapshot:
    number: int
    path: Path
    look: Look
    schema: Schema
    time: float


class Snapshots:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._directory = options.kept

    # ------------------------------------------------------------ what is kept

    def numbers(self) -> list[int]:
        if not self._directory.is_dir():
            return []
        found = (path.name for path in self._directory.iterdir() if path.suffix == _SUFFIX)
        return sorted(int(Path(name).stem) for name in found)

    def latest(self) -> Snapshot | None:
        numbers = self.numbers()
        return self.get(numbers[-1]) if numbers else None

    def get(self, number: int) -> Snapshot:
        path = self.path(number)
        try:
            metadata = _metadata(path)
        except FileNotFoundError:
            raise SourceLost(
                f"the snapshot {number} of {self._options.path} is not kept in {self._directory}:"
                " load its relation again"
            ) from None
        return Snapshot(
            number, path, metadata["look"], Schema.from_json(metadata["schema"]), metadata["time"]
        )

    def path(self, number: int) -> Path:
        return self._directory / f"{number:012d}{_SUFFIX}"

    def sizes(self) -> dict[int, int]:
        return {number: self.path(number).stat().st_size for number in self.numbers()}

    # ------------------------------------------------------------ what comes and goes

    @contextmanager
    def locked(self) -> Iterator[None]:
        self._directory.mkdir(parents=True, exist_ok=True)
        with open(self._directory / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def take(self, schema: Schema) -> Snapshot:
        """The latest snapshot if the files are as it shows them, else a new one."""
        with self.locked():
            latest = self.latest()
            for _ in range(_TRIES):
                before = look(self._options)
                if latest is not None and latest.schema == schema and latest.look == before:
                    return latest
                number = latest.number + 1 if latest is not None else 1
                taken = self._write(number, schema, before)
                if taken is not None:
                    return taken
        raise SourceUnreachable(
            f"the files {self._options.path} change while they are read: write them elsewhere, and"
            " rename them to where they belong"
        )

    def _write(self, number: int, schema: Schema, before: Look) -> Snapshot | None:
        """None if files changed meanwhile."""
        path = self.path(number)
        part = path.with_suffix(_PART)
        now = time.time()
        metadata = json.dumps({"look": before, "schema": schema.to_json(), "time": now})
        try:
            _copy(rows(self._options, schema, before), schema, part, metadata)
        except (SourceError, OtherColumns):
            if look(self._options) != before:
                return None
            raise
        if look(self._options) != before:
            return None
        _make_durable(part)
        os.rename(part, path)
        _make_durable(self._directory)
        return Snapshot(number, path, before, schema, now)

    def forget(self, number: int) -> None:
        """All snapshots before this one; never the latest."""
        with self.locked():
            for old in self.numbers()[:-1]:
                if old < number:
                    self.path(old).unlink()

    def remove(self) -> None:
        """Files of ours only: the directory may have others."""
        if not self._directory.is_dir():
            return
        with self.locked():
            for path in self._directory.iterdir():
                if path.suffix in (_SUFFIX, _PART):
                    path.unlink()


def _copy(query: str, schema: Schema, part: Path, metadata: str) -> None:
    """Rows in the order of the key, checked on the way."""
    key = ", ".join(map(quoted, schema.key))
    columns = ", ".join(map(quoted, schema.names))
    with connect() as connection:
        try:
            connection.execute(f"CREATE TEMP TABLE taken AS {query}")
            _check_keys(connection, schema, key)
            connection.execute(
                f"COPY (SELECT {columns} FROM taken ORDER BY {key}) TO {literal(str(part))}"
                f" (FORMAT parquet, KV_METADATA {{belvedere: {literal(metadata)}}})"
            )
        except duckdb.Error as error:
            raise SourceError(f"the files cannot be read: {error}") from error


def _check_keys(connection: Any, schema: Schema, key: str) -> None:
    for name in schema.key:
        found = connection.execute(
            f"SELECT {quoted(FILE)} FROM taken WHERE {quoted(name)} IS NULL LIMIT 1"
        ).fetchone()
        if found:
            raise SourceError(f"{found[0]} has a row without a key: {name} is NULL there")
    found = connection.execute(
        f"SELECT {key}, min({quoted(FILE)}), max({quoted(FILE)}) FROM taken"
        f" GROUP BY {key} HAVING count(*) > 1 LIMIT 1"
    ).fetchone()
    if found:
        *values, first, second = found
        shown = ", ".join(f"{n} = {v!r}" for n, v in zip(schema.key, values, strict=True))
        where = f"twice in {first}" if first == second else f"in {first} and in {second}"
        raise SourceError(f"the key {shown} is {where}: keys must be there once")


def _metadata(path: Path) -> dict[str, Any]:
    import pyarrow.parquet

    with open(path, "rb") as file:
        metadata = pyarrow.parquet.read_metadata(file).metadata
    found: dict[str, Any] = json.loads(metadata[b"belvedere"])
    return found


def _make_durable(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
