"""Options of CREATE SOURCE name TYPE files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from belvedere.errors import SchemaError, SourceError
from belvedere.types import Column, parse_type

_NEEDED = ("path", "key", "kept")
_KNOWN = (*_NEEDED, "every", "format", "columns", "relation", "delimiter")
_FORMATS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0}
_EVERY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h|)\s*")


@dataclass(frozen=True, slots=True)
class Options:
    """`path` is a name or a pattern; `kept` the directory for snapshots, of this source alone;
    `columns` are given where types shall not be taken from the files.
    """

    path: str
    key: tuple[str, ...]
    kept: Path
    format: str
    relation: str
    every: float = 60.0
    delimiter: str = ","
    columns: tuple[Column, ...] = field(default=())


def read_options(options: Mapping[str, str]) -> Options:
    """Refuses missing, unknown and wrong ones."""
    unknown = sorted(set(options) - set(_KNOWN))
    if unknown:
        raise SourceError(
            f"a source of type files has no option {', '.join(unknown)}: use {', '.join(_KNOWN)}"
        )
    missing = [option for option in _NEEDED if not options.get(option)]
    if missing:
        raise SourceError(f"a source of type files needs the options {', '.join(missing)}")
    return Options(
        path=options["path"],
        key=tuple(name.strip() for name in options["key"].split(",")),
        kept=Path(options["kept"]),
        format=_format(options),
        relation=options.get("relation") or _relation(options["path"]),
        every=_seconds(options.get("every", "60 s")),
        delimiter=_delimiter(options.get("delimiter", ",")),
        columns=_columns(options.get("columns", "")),
    )


def _format(options: Mapping[str, str]) -> str:
    found = options.get("format") or _FORMATS.get(Path(options["path"]).suffix.lower(), "")
    if found not in _FORMATS.values():
        raise SourceError(
            f"the format of {options['path']} is not known: use format = 'csv', 'parquet' or 'json'"
        )
    return found


def _relation(path: str) -> str:
    """The file's name without its suffix; of a pattern the directory's."""
    name = Path(path).stem
    if any(sign in name for sign in "*?["):
        name = Path(path).absolute().parent.name
    if not name or any(sign in name for sign in "*?["):
        raise SourceError(f"{path} names no relation: give one as the option relation")
    return name


def _seconds(text: str) -> float:
    match = _EVERY.fullmatch(text)
    if match is None:
        raise SourceError(f"every = {text!r} is no time: use seconds, or '500 ms', '60 s', '5 min'")
    return float(match[1]) * _UNITS[match[2]]


def _delimiter(text: str) -> str:
    if len(text) != 1:
        raise SourceError(f"delimiter = {text!r}: use one character")
    return text


def _columns(text: str) -> tuple[Column, ...]:
    """`name type, name type`; commas inside of parentheses belong to a type."""
    found = []
    for part in re.split(r",(?![^()]*\))", text) if text.strip() else ():
        name, _, kind = part.strip().partition(" ")
        try:
            found.append(Column(name, parse_type(kind)))
        except SchemaError as error:
            raise SourceError(f"columns has {part.strip()!r}: {error}") from error
    return tuple(found)
