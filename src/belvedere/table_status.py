"""Status of foreign tables: how they are captured, and what is wrong with their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belvedere.catalog import layout
from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.catalog.state import CatalogState
from belvedere.readers.cut import Cut, at_cut
from belvedere.readers.problems import faulty_rows, odd_rows
from belvedere.stores.base import Condition, ForeignServer, ForeignTable, Store


@dataclass(frozen=True, slots=True)
class ColumnFault:
    """Rows in which a column is not what it is declared to be, and one of them."""

    column: str
    rows: int
    example: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A foreign table. Rows whose key is not of the declared types are left out of all views."""

    name: str
    source: str
    is_adopted: bool  # everything that it had is in the epochs
    regions: int | None  # None: it is not there any more
    bulk_loads: int  # seen so far
    unchecked_loads: int  # of these since the picture was last found right
    left_out: int
    left_out_example: str
    faults: tuple[ColumnFault, ...]

    @property
    def advice(self) -> str:
        """What somebody should do."""
        if self.regions is None:
            return f"{self.source} is not there any more: drop the table, or restore it"
        if self.unchecked_loads:
            return (
                f"{self.name} had a bulk load, whose rows are in no log: run belvedere verify"
                f" --base {self.name} --repair --yes"
            )
        return ""


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """`state` is enabled, disabled or missing. The lag is of what is captured."""

    state: str
    lag_operations: int
    lag_seconds: float
    servers: tuple[ForeignServer, ...]

    @property
    def advice(self) -> str:
        if self.state == "enabled":
            return ""
        if self.state == "disabled":
            return (
                "capture is disabled: nothing is lost, but nothing arrives. Enable the peer, or run"
                " belvedere hbase install"
            )
        return (
            "capture is missing: changes are lost to the views. Run belvedere hbase install, then"
            " belvedere verify --base --repair --yes"
        )


def read_tables(store: Store, state: CatalogState, condition: Condition) -> tuple[TableInfo, ...]:
    checked = store.catalog.read(layout.CHECKED.all)
    known = sorted(state.tables.values(), key=lambda table: table.name)
    return tuple(
        _table(store, state, table, condition.tables[table.id], checked.get(table.id, 0))
        for table in known
        if table.id in condition.tables
    )


def _table(
    store: Store, state: CatalogState, table: TableDefinition, found: ForeignTable, checked: int
) -> TableInfo:
    left_out = state.errors.get(table.faults[-1], 0) if table.faults else 0
    faults = tuple(
        ColumnFault(column.name, state.errors[number], _example(store, table, place))
        for place, (column, number) in enumerate(
            zip(table.schema.value_columns, table.faults, strict=False)
        )
        if state.errors.get(number)
    )
    return TableInfo(
        table.name,
        found.source,
        table.id not in state.adopting,
        found.regions,
        found.bulk_loads,
        max(0, found.bulk_loads - checked),
        left_out,
        _odd_example(store, table) if left_out else "",
        faults,
    )


def _example(store: Store, table: TableDefinition, place: int) -> dict[str, Any]:
    column, faults = table.schema.value_columns[place], table.faults[place]

    def read(cut: Cut) -> dict[str, Any]:
        return next(iter(faulty_rows(cut, table, column, faults, 1)), {})

    return at_cut(store, read)


def _odd_example(store: Store, table: TableDefinition) -> str:
    found = at_cut(store, lambda cut: odd_rows(cut, table, 1))
    return found[0].decode(errors="backslashreplace") if found else ""


def advice_for(view: ViewDefinition, tables: tuple[TableInfo, ...], state: CatalogState) -> str:
    """What should be done about the tables of a view."""
    used = {t.name for t in state.tables.values() if t.id in view.planned.sources}
    return "; ".join(table.advice for table in tables if table.name in used and table.advice)
