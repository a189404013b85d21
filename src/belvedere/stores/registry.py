"""Stores by URL: the scheme chooses a plug-in, which is imported when it is first asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from belvedere.errors import StoreError
from belvedere.stores.base import Store

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]+):(.*)$", re.DOTALL)


def _embedded(url: str, rest: str, **options: Any) -> Store:
    from belvedere.stores.embedded import EmbeddedStore

    if not rest:
        raise StoreError(
            f"{url!r} has no path: give the directory of the store, as in belvedere:/var/lib/views"
        )
    return EmbeddedStore.open(rest, **options)


def _memory(url: str, rest: str, **options: Any) -> Store:
    from belvedere.stores.memory import MemoryStore

    if rest:
        raise StoreError(f"a store in memory has no path: use memory: instead of {url!r}")
    return MemoryStore(**options)


def _not_there_yet(url: str, rest: str, **options: Any) -> Store:
    raise StoreError(
        f"{url!r}: this store is not there yet. Use a directory path (the embedded store) or"
        " memory:"
    )


SCHEMES: dict[str, Callable[..., Store]] = {
    "belvedere": _embedded,
    "memory": _memory,
    "hbase": _not_there_yet,
    "cassandra": _not_there_yet,
}


def open_store(url: str, **options: Any) -> Store:
    """Open the store at a path or URL; options are those of the store's constructor."""
    match = _SCHEME.match(url)
    if match is None:
        return _embedded(url, url, **options)
    scheme, rest = match[1].lower(), match[2]
    if scheme not in SCHEMES:
        raise StoreError(
            f"there is no store for {url!r}: use a directory path, or one of"
            f" {', '.join(f'{name}:' for name in SCHEMES)}"
        )
    return SCHEMES[scheme](url, rest, **options)
