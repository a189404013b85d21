"""Stores by URL: the scheme chooses a plug-in, which is imported when it is first asked for.

A package of its own registers one by an entry point of the group `belvedere.stores`, whose name is
the scheme and whose value is a `Plugin`; or by calling `register`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from belvedere.errors import StoreError
from belvedere.stores.base import Store

GROUP = "belvedere.stores"
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]+):(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Plugin:
    """How stores of one scheme are opened and found.

    `open` takes what follows the scheme, and options; it makes a store that is not there. `exists`
    tells whether one is there: the command line asks, so that a mistyped name makes none.
    """

    open: Callable[..., Store]
    exists: Callable[[str], bool]


def _open_embedded(path: str, **options: Any) -> Store:
    from belvedere.stores.embedded import EmbeddedStore

    if not path:
        raise StoreError(
            "'belvedere:' has no path: give the directory of the store, as in"
            " belvedere:/var/lib/views"
        )
    return EmbeddedStore.open(path, **options)


def _embedded_exists(path: str) -> bool:
    from belvedere.stores.embedded.layout import is_store

    return is_store(path)


def _open_memory(rest: str, **options: Any) -> Store:
    from belvedere.stores.memory import MemoryStore

    if rest:
        raise StoreError(f"a store in memory has no path: use memory: instead of memory:{rest}")
    return MemoryStore(**options)


def _open_hbase(rest: str, **options: Any) -> Store:
    from belvedere.stores.hbase.store import HBaseStore

    return HBaseStore.open(f"hbase:{rest}", **options)


def _hbase_exists(rest: str) -> bool:
    from belvedere.stores.hbase.store import exists

    return exists(f"hbase:{rest}")


_plugins: dict[str, Plugin] = {
    "belvedere": Plugin(_open_embedded, _embedded_exists),
    "hbase": Plugin(_open_hbase, _hbase_exists),
    "memory": Plugin(_open_memory, lambda rest: False),
}


def register(scheme: str, plugin: Plugin) -> None:
    """Let URLs of a scheme be opened by a plug-in. Spark's workers need an entry point instead."""
    _plugins[scheme.lower()] = plugin


def open_store(url: str, **options: Any) -> Store:
    """Open the store at a path or URL; options are those of the store's constructor."""
    plugin, rest = _found(url)
    return plugin.open(rest, **options)


def open_shared(url: str) -> Store:
    """The store of this process at a path or URL, opened when it is first asked for: for workers
    that run many tasks. A directory that was removed and made anew is another store.
    """
    path = embedded_path(url)
    if path is None:
        return _open_once(url)
    from belvedere.stores.embedded import open_cached

    return open_cached(path)


@lru_cache(maxsize=16)
def _open_once(url: str) -> Store:
    return open_store(url)


def exists(url: str) -> bool:
    """Whether there is a store at a path or URL."""
    plugin, rest = _found(url)
    return plugin.exists(rest)


def check_path(path: str) -> str:
    """The same path, if files can have such a name, and text can tell it."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise StoreError(f"{path!r} is no text in UTF-8: choose a path that is") from None
    if "\0" in path:
        raise StoreError(f"no file is called {path!r}: choose another path")
    return path


def embedded_path(url: str) -> str | None:
    """The directory of a store that is embedded; None if it is another kind."""
    match = _SCHEME.match(check_path(url))
    if match is None:
        return url
    return match[2] if match[1].lower() == "belvedere" else None


def _found(url: str) -> tuple[Plugin, str]:
    match = _SCHEME.match(check_path(url))
    if match is None:
        return _plugins["belvedere"], url
    scheme, rest = match[1].lower(), match[2]
    if scheme not in _plugins:
        _plugins[scheme] = _installed(scheme, url)
    return _plugins[scheme], rest


def _installed(scheme: str, url: str) -> Plugin:
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=scheme):
        plugin: Plugin = entry.load()
        return plugin
    known = sorted({*_plugins, *(entry.name for entry in entry_points(group=GROUP))})
    raise StoreError(
        f"there is no store for {url!r}: use a directory path, or one of"
        f" {', '.join(f'{name}:' for name in known)}; others are packages to install"
    )
