"""Writing histories: lines, appended durably, and what a reader saw."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from belvedere.consistency.history import FORMAT
from belvedere.consistency.recompute import plain
from belvedere.errors import HistoryError


class Recorder:
    """Appends lines to a history; one of another database is refused."""

    def __init__(self, path: str | os.PathLike[str], database: str | None = None) -> None:
        self.path = Path(path)
        header = _line({"history": FORMAT, "database": database})
        try:
            first = _first_line(self.path)
            if first.endswith(b"\n"):
                _check_header(self.path, first, database)
            elif not header.startswith(first):  # what a crash leaves of a header is its beginning
                raise _no_history(self.path)
            self._cut(whole_lines)
        except OSError as error:
            raise HistoryError(f"{path} cannot be written: {error.strerror}") from error
        if not first.endswith(b"\n"):
            self._append(header)

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append lines; they are on disk when this returns."""
        self._append(b"".join(map(_line, lines)))

    def _append(self, text: bytes) -> None:
        with open(self.path, "ab") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def cut_after_recorded(self) -> None:
        """Remove the lines of an epoch that a crash cut short: no `recorded` follows them."""
        self._cut(recorded_lines)

    def _cut(self, length: Callable[[BinaryIO], int]) -> None:
        with open(self.path, "a+b") as file:
            file.seek(0)
            kept = length(file)
            if kept < os.fstat(file.fileno()).st_size:
                file.truncate(kept)

    def saw(
        self, view: str, rows: Iterable[Mapping[str, Any]], by: str = "observer", **more: Any
    ) -> None:
        """All rows of a view, as a reader saw them."""
        self.write([{"whole": view, "rows": [_row(r) for r in rows], "by": by, **more}])

    def saw_record(
        self, view: str, key: Iterable[Any], row: Mapping[str, Any] | None, by: str = "observer"
    ) -> None:
        """One record of a view, as a reader saw it; None if it was not there."""
        seen = None if row is None else _row(row)
        self.write([{"state": view, "key": [plain(k) for k in key], "row": seen, "by": by}])


def whole_lines(file: BinaryIO) -> int:
    return sum(len(line) for line in file if line.endswith(b"\n"))


def recorded_lines(file: BinaryIO) -> int:
    kept = place = 0
    for line in file:
        place += len(line)
        if not kept or line.startswith(b'{"recorded"'):
            kept = place
    return kept


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in row.items()}


def _line(line: Mapping[str, Any]) -> bytes:
    return (json.dumps(line, default=plain) + "\n").encode()


def _first_line(path: Path) -> bytes:
    """Nothing, if there is no file yet."""
    if not path.exists():
        return b""
    with open(path, "rb") as file:
        return file.readline()


def _check_header(path: Path, first: bytes, database: str | None) -> None:
    try:
        header = json.loads(first)
        known = header["history"], header["database"]
    except (ValueError, KeyError, TypeError) as error:
        raise _no_history(path) from error
    if known[0] != FORMAT or database not in (None, known[1]):
        raise HistoryError(
            f"{path} is the history of another database ({known[1]}): give a file of its own"
        )


def _no_history(path: Path) -> HistoryError:
    return HistoryError(f"{path} is no history, and is left as it is: give a new file")
