"""Histories: what was written and what was seen, one JSON object per line.

    {"history": 1, "database": "..."}                                              first, optional
    {"table": "r", "key": ["k"], "columns": {"k": "VARCHAR", "x": "BIGINT"}}       types of DuckDB
    {"op": 17, "stream": "log", "tx": 9, "table": "r", "row": {...}}               a put
    {"op": 18, "stream": "log", "tx": 9, "table": "r", "key": ["k4"], "row": null} a delete
    {"view": "d", "select": "...", "key": ["x"], "decode": "powers", "from": {"log": 4}}
    {"state": "d", "key": ["x1"], "row": {...}, "by": "reader-1"}                  one record
    {"whole": "d", "rows": [...], "by": "reader-2", "epoch": 42, "at": {"log": 19}} all rows
    {"recorded": 42, "at": {"log": 19}}    everything of an epoch stands before this line
    {"final": "d"}                      nothing more will come: the last state must be the right one

Operations stand in the order of their stream; those with the same `tx` are one transaction. States
of one observer (`by`) stand in the order in which it saw them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from belvedere.errors import HistoryError

FORMAT = 1
DECODERS = ("powers", "elements", "minimum")
Key = tuple[Any, ...]
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    key: tuple[str, ...]
    columns: dict[str, str]
    id: int = 0  # tells tables of one name apart


@dataclass(frozen=True, slots=True)
class Operation:
    number: int
    stream: str
    tx: Any
    table: str
    key: Key
    row: Values | None

    def __str__(self) -> str:
        what = "delete" if self.row is None else "put"
        rest = "" if self.row is None else f" {tuple(self.row.values())}"
        return f"{self.number} {what} {self.table} {', '.join(map(str, self.key))}{rest}"


@dataclass(frozen=True, slots=True)
class View:
    name: str
    select: str
    key: tuple[str, ...] = ()
    alias: str = ""  # how other views call it
    id: int = 0
    decode: str | None = None
    since: dict[str, int] = field(default_factory=dict)  # the view begins with these operations


@dataclass(frozen=True, slots=True)
class State:
    """What an observer saw: the rows of one record, or of the whole view (`record` is None)."""

    view: str
    record: Key | None
    rows: tuple[Values, ...]
    by: str
    number: int  # in the order of the file
    epoch: int | None = None
    at: dict[str, int] | None = None  # operations of each stream, if the writer knows


@dataclass(slots=True)
class History:
    tables: dict[str, Table] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    views: dict[str, View] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    final: set[str] = field(default_factory=set)
    database: str | None = None
    recorded: tuple[int, dict[str, int]] | None = None  # the last epoch that is here as a whole

    def transactions(self) -> dict[str, list[list[Operation]]]:
        """Per stream, in order, the transactions of operations."""
        found: dict[str, list[list[Operation]]] = {}
        for o in self.operations:
            line = found.setdefault(o.stream, [])
            if line and line[-1][-1].tx == o.tx:
                line[-1].append(o)
            else:
                line.append([o])
        return found

    def with_parts(self, operations: list[Operation], states: list[State]) -> History:
        return replace(self, operations=operations, states=states)

    def add(self, line: Mapping[str, Any]) -> None:
        """Take one line; raises HistoryError if it does not fit."""
        kinds = [kind for kind in _KINDS if kind in line]
        if "op" in kinds:  # an operation names its table
            kinds = ["op"]
        if len(kinds) != 1:
            raise HistoryError(f"a line has one of {', '.join(_KINDS)}")
        _KINDS[kinds[0]](self, line)


def read_history(path: str | Path) -> History:
    history = History()
    try:
        with open(path, encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if text.strip():
                    _take(history, text, f"{path}, line {number}")
    except OSError as error:
        raise HistoryError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise HistoryError(f"{path} is no history: it is not text in UTF-8") from error
    return history


def history_of(lines: Iterable[Mapping[str, Any]]) -> History:
    history = History()
    for line in lines:
        history.add(line)
    return history


def _take(history: History, text: str, where: str) -> None:
    try:
        line = json.loads(text)
        if not isinstance(line, dict):
            raise HistoryError("a line is a JSON object")
        history.add(line)
    except json.JSONDecodeError as error:
        raise HistoryError(f"{where}: not JSON ({error.msg}); a line is a JSON object") from error
    except HistoryError as error:
        raise HistoryError(f"{where}: {error}") from error


def _get(line: Mapping[str, Any], name: str, kind: type | tuple[type, ...], *default: Any) -> Any:
    value = line.get(name, *default)
    if name not in line and not default:
        raise HistoryError(f"{name!r} is missing")
    if default and value is None:
        return default[0]
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
        raise HistoryError(f"{name!r} is {value!r}, and should be of type {wanted}")
    return value


def _header(history: History, line: Mapping[str, Any]) -> None:
    if line["history"] != FORMAT:
        raise HistoryError(f"this is format {line['history']!r}, and {FORMAT} is understood here")
    history.database = _get(line, "database", str, None)


def _table(history: History, line: Mapping[str, Any]) -> None:
    name, columns = _get(line, "table", str), _get(line, "columns", dict)
    key = tuple(_get(line, "key", list))
    strange = [c for c in key if c not in columns]
    if strange or not key:
        raise HistoryError(f"the key of table {name} names no column: {strange or 'it is empty'}")
    history.tables[name] = Table(name, key, columns, _get(line, "id", int, 0))


def _operation(history: History, line: Mapping[str, Any]) -> None:
    table = _known(history.tables, "table", _get(line, "table", str))
    row = None if line.get("row") is None else _get(line, "row", dict)
    number, stream = _get(line, "op", int), _get(line, "stream", str, "log")
    if row is not None:
        _check_columns(table, row)
    key = tuple(row[c] for c in table.key) if row is not None else tuple(_get(line, "key", list))
    if len(key) != len(table.key):
        raise HistoryError(f"a key of table {table.name} has {len(table.key)} value(s)")
    last = next((o for o in reversed(history.operations) if o.stream == stream), None)
    if last is not None and last.number >= number:
        raise HistoryError(f"operation {number} of stream {stream} stands after {last.number}")
    history.operations.append(
        Operation(number, stream, line.get("tx", number), table.name, key, row)
    )


def _check_columns(table: Table, row: Values) -> None:
    if strange := [c for c in row if c not in table.columns]:
        raise HistoryError(f"table {table.name} has no column {', '.join(strange)}")
    if missing := [c for c in table.key if c not in row]:
        raise HistoryError(f"the row has no value for key column {', '.join(missing)}")


def _view(history: History, line: Mapping[str, Any]) -> None:
    decode = line.get("decode")
    if decode is not None and decode not in DECODERS:
        raise HistoryError(f"decode {decode!r} is not known: use {', '.join(DECODERS)}, or null")
    name = _get(line, "view", str)
    history.views[name] = View(
        name,
        _get(line, "select", str),
        tuple(_get(line, "key", list, [])),
        _get(line, "name", str, name),
        _get(line, "id", int, 0),
        decode,
        _get(line, "from", dict, {}),
    )


def _state(history: History, line: Mapping[str, Any]) -> None:
    view = _known(history.views, "view", _get(line, "state", str))
    record = tuple(_get(line, "key", list))
    if len(record) != len(view.key):
        raise HistoryError(f"a key of view {view.name} has {len(view.key)} value(s)")
    if "rows" in line:
        rows = _get(line, "rows", list)
    else:
        row = line.get("row")
        rows = [] if row is None else [_get(line, "row", dict)]
    _see(history, line, view, record, rows)


def _whole(history: History, line: Mapping[str, Any]) -> None:
    view = _known(history.views, "view", _get(line, "whole", str))
    _see(history, line, view, None, _get(line, "rows", list))


def _see(
    history: History, line: Mapping[str, Any], view: View, record: Key | None, rows: list[Any]
) -> None:
    if not all(isinstance(row, dict) for row in rows):
        raise HistoryError("rows are JSON objects: a value for each column")
    at = None if line.get("at") is None else _get(line, "at", dict)
    number = len(history.states)
    by, epoch = _get(line, "by", str, "observer"), _get(line, "epoch", int, None)
    history.states.append(State(view.name, record, tuple(rows), by, number, epoch, at))


def _final(history: History, line: Mapping[str, Any]) -> None:
    history.final.add(_known(history.views, "view", _get(line, "final", str)).name)


def _recorded(history: History, line: Mapping[str, Any]) -> None:
    history.recorded = _get(line, "recorded", int), _get(line, "at", dict)


def _known(found: Mapping[str, Any], kind: str, name: str) -> Any:
    if name not in found:
        raise HistoryError(f"{kind} {name} has not been declared on a line before")
    return found[name]


_KINDS: dict[str, Callable[[History, Mapping[str, Any]], None]] = {
    "history": _header,
    "op": _operation,
    "view": _view,
    "state": _state,
    "whole": _whole,
    "final": _final,
    "recorded": _recorded,
    "table": _table,
}
