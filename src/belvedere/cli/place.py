"""Which database a command works on.

Only `init` and `demo` create one: a mistyped path must not become an empty database.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from belvedere.errors import StoreError


@dataclass(frozen=True, slots=True)
class Place:
    """What the shared options say."""

    db: str | None = None
    traceback: bool = False
    read_only: bool = False

    def overridden(self, other: Place) -> Place:
        return Place(
            other.db or self.db,
            other.traceback or self.traceback,
            other.read_only or self.read_only,
        )


def is_database(path: str | Path) -> bool:
    return (Path(path) / "format.json").is_file()


def path_of(place: Place) -> str:
    """The directory of a database that exists."""
    path = (place.db or ".").removeprefix("belvedere:")
    if is_database(path):
        return path
    if place.db is None:
        raise StoreError(
            "this directory is not a Belvedere database: name one with --db PATH or BELVEDERE_DB,"
            " or run belvedere init PATH"
        )
    raise StoreError(
        f"{path} is not a Belvedere database: check the path, or run belvedere init {path}"
    )
