"""Cases that failed once, kept as files: `tests/laws/regressions/NAME.json`.

A law that fails writes its smallest case there; the file is committed with what mends it, and
`test_regressions.py` runs all of them before anything random. The form is made to be read in a
diff: one line per table and per action, values as they would be written, with their type where JSON
has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

from belvedere.epochs.settings import Settings
from belvedere.types import Schema, parse_type
from tests.laws.domains import Table
from tests.laws.queries import View
from tests.laws.script import Action, Base, Case, Create, Drop, Row, Run, Settle, Write

FOLDER = Path(__file__).parent / "regressions"


def keep(case: Case, found: str, folder: Path = FOLDER, name: str = "") -> Path:
    """Write the case, with what was wrong when it was found; returns the file."""
    text = to_text(case, found)
    folder.mkdir(exist_ok=True)
    path = folder / f"{name or f'{case.law}-{sha256(text.encode()).hexdigest()[:8]}'}.json"
    path.write_text(text, encoding="utf-8")
    return path


def files(folder: Path = FOLDER) -> list[Path]:
    return sorted(folder.glob("*.json"))


def read(path: Path) -> Case:
    return from_text(path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- cases


def to_text(case: Case, found: str) -> str:
    plain = asdict(Settings())
    head = {
        "found": " ".join(found.split()),
        "law": case.law,
        "store": case.store,
        "slots": case.slots,
        "streams": case.streams,
        "settings": {k: v for k, v in asdict(case.settings).items() if v != plain[k]},
    }
    if case.longest_key is not None:
        head["longest_key"] = case.longest_key
    lines = [f'"{name}": {_json(value)}' for name, value in head.items()]
    lines.append(f'"tables": {_listed(_base_to_json(base) for base in case.tables)}')
    lines.append(f'"script": {_listed(_action_to_json(action) for action in case.script)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_text(text: str) -> Case:
    data = json.loads(text)
    return Case(
        data["law"],
        tuple(_base_from_json(base) for base in data["tables"]),
        data["store"],
        data["slots"],
        data["streams"],
        Settings(**data["settings"]),
        tuple(_action_from_json(action) for action in data["script"]),
        data.get("longest_key"),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _listed(items: Iterable[Any]) -> str:
    return "[\n" + ",\n".join(f"  {_json(item)}" for item in items) + "\n]"


# ---------------------------------------------------------------- tables and actions


def _base_to_json(base: Base) -> dict[str, Any]:
    return {
        "name": base.name,
        "before_images": base.before_images,
        **base.table.schema.to_json(),
        "pools": {name: _row_to_json(pool) for name, pool in base.table.pools.items()},
    }


def _base_from_json(data: dict[str, Any]) -> Base:
    pools = {name: list(_row_from_json(pool)) for name, pool in data["pools"].items()}
    return Base(data["name"], Table(Schema.from_json(data), pools), data["before_images"])


def _action_to_json(action: Action) -> dict[str, Any]:
    match action:
        case Write(operations, table):
            return {"write": [_operation_to_json(*each) for each in operations], "table": table}
        case Create(view, name, replace):
            return {"create": name, "replace": replace, **_view_to_json(view)}
        case Drop(name):
            return {"drop": name}
        case Run(tasks, dies_at, after):
            return {"run": tasks, "dies_at": dies_at, "after": after}
        case Settle():
            return {"settle": True}


def _action_from_json(data: dict[str, Any]) -> Action:
    if "write" in data:
        return Write(tuple(_operation_from_json(*each) for each in data["write"]), data["table"])
    if "create" in data:
        return Create(_view_from_json(data), data["create"], data["replace"])
    if "drop" in data:
        return Drop(data["drop"])
    if "run" in data:
        return Run(data["run"], data["dies_at"], data["after"])
    assert data == {"settle": True}, data
    return Settle()


def _view_to_json(view: View) -> dict[str, Any]:
    return {
        "select": view.select,
        "key": list(view.key),
        "shape": view.shape,
        "types": [str(kind) for kind in view.types],
        "shapes": sorted(view.shapes),
    }


def _view_from_json(data: dict[str, Any]) -> View:
    types = tuple(parse_type(kind) for kind in data["types"])
    shapes = frozenset(data["shapes"])
    return View(data["select"], tuple(data["key"]), data["shape"], types, shapes)


def _operation_to_json(key: Row, row: Row | None) -> list[Any]:
    return [_row_to_json(key), None if row is None else _row_to_json(row)]


def _operation_from_json(key: list[Any], row: list[Any] | None) -> tuple[Row, Row | None]:
    return _row_from_json(key), None if row is None else _row_from_json(row)


# ---------------------------------------------------------------- values


def _row_to_json(row: Iterable[Any]) -> list[Any]:
    return [_value_to_json(value) for value in row]


def _row_from_json(row: Iterable[Any]) -> Row:
    return tuple(_value_from_json(value) for value in row)


def _value_to_json(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"double": repr(value)}
        case bytes():
            return {"binary": value.hex()}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():  # before date, of which it is a kind
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
    raise TypeError(f"{value!r} is no value of a table")


def _value_from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return _READERS[kind](text)


_READERS: dict[str, Any] = {
    "double": float,
    "binary": bytes.fromhex,
    "decimal": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
}
