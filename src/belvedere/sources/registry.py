"""Sources by kind: CREATE SOURCE name TYPE kind chooses a plug-in, which is imported when it is
first asked for.

A package of its own registers one by an entry point of the group `belvedere.sources`, whose name is
the kind and whose value is an `Open`; or by calling `register`. Ours are packages beside this
module that have an `open_source`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeAlias

from belvedere.errors import SourceError
from belvedere.sources.base import Source

GROUP = "belvedere.sources"
# The source's name, and options with the values of secrets. To open connects to nobody: it checks
# the options, and raises SourceError for those that are missing, wrong or unknown.
Open: TypeAlias = Callable[[str, Mapping[str, str]], Source]

_OURS = ("postgres", "mariadb", "files")
_INSTALL = "pip install 'belvedere[sources]'"
_registered: dict[str, Open] = {}


def register(kind: str, open_source: Open) -> None:
    """Let sources of a kind be opened by a plug-in, in this process."""
    _registered[kind.lower()] = open_source


def kinds() -> list[str]:
    from importlib.metadata import entry_points

    return sorted({*_OURS, *_registered, *(e.name for e in entry_points(group=GROUP))})


def open_source(kind: str, name: str, options: Mapping[str, str]) -> Source:
    """The source of a kind with these options; the values of secrets are among them."""
    low = kind.lower()
    if low not in _registered:
        _registered[low] = _found(low)
    return _registered[low](name, options)


def _found(kind: str) -> Open:
    from importlib.metadata import entry_points

    if kind in _OURS:
        return _ours(kind)
    for entry in entry_points(group=GROUP, name=kind):
        found: Open = entry.load()
        return found
    raise SourceError(
        f"there is no source of type {kind}: use one of {', '.join(kinds())}; others are packages"
        " to install"
    )


def _ours(kind: str) -> Open:
    try:
        found: Open = import_module(f"belvedere.sources.{kind}").open_source
    except ModuleNotFoundError as error:
        raise SourceError(
            f"a source of type {kind} needs a package that is not installed ({error.name}):"
            f" {_INSTALL}"
        ) from error
    return found
