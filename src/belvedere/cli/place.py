"""Which database a command works on.

Only `init`, `demo` and `restore` create one: a mistyped path must not become an empty database.
"""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from belvedere.errors import StoreError
from belvedere.stores.registry import exists


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


def url_of(place: Place) -> str:
    """The path or URL of a database that exists."""
    url = place.db or "."
    if exists(url):
        return url
    if place.db is None:
        raise StoreError(
            "this directory is not a Belvedere database: name one with --db PATH or BELVEDERE_DB,"
            " or run belvedere init PATH"
        )
    raise StoreError(
        f"{url} is not a Belvedere database: check the path, or run belvedere init {quote(url)}"
    )
