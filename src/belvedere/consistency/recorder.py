"""Writing histories: lines, appended durably, and what a reader saw."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from belvedere.consistency.history import FORMAT
from belvedere.consistency.recompute import plain
from belvedere.errors import HistoryError


class Recorder:
    """Appends lines to a history: what is not whole at its end, after a crash, goes.

    A file of another database is refused.
    """

    def __init__(self, path: str | os.PathLike[str], database: str | None = None) -> None:
        self.path = Path(path)
        try:
            self._file = open(self.path, "a+b")  # noqa: SIM115  # closed by close()
        except OSError as error:
            raise HistoryError(f"{path} cannot be written: {error.strerror}") from error
        try:
            self._begin(database)
        except BaseException:  # whatever it was, nobody gets this recorder, so nobody closes it
            self._file.close()
            raise

    def _begin(self, database: str | None) -> None:
        self._file.seek(0)
        whole = 0
        first = b""
        for line in self._file:
            if line.endswith(b"\n"):
                first = first or line
                whole += len(line)
        self._file.truncate(whole)
        if not first:
            self.write([{"history": FORMAT, "database": database}])
        elif database is not None:
            _check_header(self.path, first, database)

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append lines; they are on disk when this returns."""
        text = "".join(json.dumps(line, default=plain) + "\n" for line in lines)
        self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())

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

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in row.items()}


def _check_header(path: Path, first: bytes, database: str) -> None:
    try:
        header = json.loads(first)
        known = header["history"], header["database"]
    except (ValueError, KeyError, TypeError) as error:
        raise HistoryError(f"{path} is no history: give a new file, or remove this one") from error
    if known != (FORMAT, database):
        raise HistoryError(
            f"{path} is the history of another database ({known[1]}): give a file of its own"
        )
