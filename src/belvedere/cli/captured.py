"""How foreign tables stand, for belvedere status: capture, servers, tables, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from belvedere.cli.tables import new_table, plural
from belvedere.cli.values import to_text
from belvedere.table_status import CaptureInfo, TableInfo


def captured(capture: CaptureInfo, tables: tuple[TableInfo, ...]) -> list[RenderableType]:
    parts: list[RenderableType] = [_heading(capture)]
    if capture.servers:
        parts.append(servers_table(capture))
    if tables:
        parts.append(tables_table(tables))
    return [*parts, *_wrong(tables), *_advice(capture, tables)]


def _heading(capture: CaptureInfo) -> Text:
    style = "green" if capture.state == "enabled" else "bold red"
    lag = f"{plural(capture.lag_operations, 'captured operation')} not in the views"
    age = f", the oldest {capture.lag_seconds:.1f} s old" if capture.lag_operations else ""
    return Text.assemble("capture is ", (capture.state, style), f": {lag}{age}")


def servers_table(capture: CaptureInfo) -> Table:
    """Dead ones are shown as long as the store remembers them."""
    table = new_table("region server", "", "regions", right=("regions",))
    for server in capture.servers:
        alive = Text("alive", "green") if server.is_alive else Text("dead", "bold red")
        table.add_row(server.name, alive, f"{server.regions:,}")
    return table


def tables_table(tables: tuple[TableInfo, ...]) -> Table:
    numbers = ("regions", "bulk loads", "rows left out", "wrong cells")
    table = new_table("table", "of", "state", *numbers, right=numbers)
    for t in tables:
        state = Text("adopted", "green") if t.is_adopted else Text("being adopted", "yellow")
        regions = Text("gone", "bold red") if t.regions is None else Text(f"{t.regions:,}")
        loads = Text(f"{t.bulk_loads:,}", "bold red" if t.unchecked_loads else "")
        wrong = sum(fault.rows for fault in t.faults)
        table.add_row(
            Text(t.name, "bold"), t.source, state, regions, loads, _count(t.left_out), _count(wrong)
        )
    return table


def _count(number: int) -> Text:
    return Text(f"{number:,}", "bold red" if number else "dim")


def _wrong(tables: tuple[TableInfo, ...]) -> Iterator[Text]:
    """What is wrong, with an example of each."""
    for t in tables:
        if t.left_out:
            rows = plural(t.left_out, "row")
            yield Text(f"{t.name}: {rows} left out, whose key is not as declared, as in ").append(
                t.left_out_example, "bold"
            )
        for fault in t.faults:
            example = {k: v for k, v in fault.example.items() if k != "expression"}
            shown = " ".join(f"{name}={to_text(value)}" for name, value in example.items())
            what = fault.example.get("expression", f"{fault.column} is wrong")
            yield Text(f"{t.name}: in {plural(fault.rows, 'row')} {what}, as in ").append(
                shown, "bold"
            )


def _advice(capture: CaptureInfo, tables: tuple[TableInfo, ...]) -> Iterator[Text]:
    for advice in (capture.advice, *(table.advice for table in tables)):
        if advice:
            yield Text(advice, "yellow")
