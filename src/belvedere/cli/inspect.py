"""belvedere inspect: read everything and say what is damaged."""

from __future__ import annotations

from collections.abc import Iterable

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belvedere.cli.options import Json
from belvedere.cli.place import Place
from belvedere.cli.tables import console, new_table, plural, size
from belvedere.cli.values import to_json
from belvedere.inspection import Finding, Inspection
from belvedere.inspection import inspect as read_all
from belvedere.stores.embedded.inspection import Part

_SHOWN = 5  # of what is damaged in a file


def inspect(ctx: typer.Context, json: Json = False) -> None:
    """Read everything in the directory and say what is damaged.

    Works while others write, and on a database that cannot be opened. The exit code is 1 if
    something is damaged.
    """
    place = ctx.obj if isinstance(ctx.obj, Place) else Place()
    with Console(stderr=True).status("reading all files ..."):
        found = read_all(place.db or ".")
    if json:
        typer.echo(to_json(found.to_json(), indent=2))
    else:
        _show(found, console())
    if not found.ok:
        raise typer.Exit(1)


def _show(found: Inspection, out: Console) -> None:
    out.print(parts_table(found.parts))
    for part in found.parts:
        if part.unnamed:
            names = plural(len(part.unnamed), "file")
            out.print(f"{part.name}: {names} that nothing names; collecting removes them")
    for findings in _alike(found.findings):
        _show_findings(findings, out)
    if found.ok:
        out.print(Text("nothing is damaged", "green"))


def parts_table(parts: tuple[Part, ...]) -> Table:
    numbers = ("bytes", "entries", "log blocks", "run lists", "sections", "records")
    table = new_table("", "part", *numbers, right=numbers)
    for part in parts:
        mark = Text("✗", "bold red") if part.damages else Text("✓", "bold green")
        counts = part.entries, part.log_blocks, part.lists, part.sections, part.records
        shown = (f"{count:,}" if count else "" for count in counts)
        table.add_row(mark, Text(part.name, "bold"), size(part.size), *shown)
    return table


def _alike(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Those of one file and one table together."""
    found: dict[tuple[str, str, str], list[Finding]] = {}
    for each in findings:
        found.setdefault((each.file, each.concerns, each.remedy), []).append(each)
    return list(found.values())


def _show_findings(findings: list[Finding], out: Console) -> None:
    first = findings[0]
    out.print(Text(first.file, "bold red"), soft_wrap=True)
    if first.concerns:
        out.print(f"  of {first.concerns}", soft_wrap=True, markup=False)
    for each in findings[:_SHOWN]:
        keys = f"; keys {each.keys}" if each.keys else ""
        out.print(Text(f"  {each.what}{keys}", "red"), soft_wrap=True)
    if len(findings) > _SHOWN:
        out.print(f"  and {len(findings) - _SHOWN:,} more")
    out.print(f"  what helps: {first.remedy}", soft_wrap=True, markup=False)
