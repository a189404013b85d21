"""belvedere sources: a real PostgreSQL and a real MariaDB on this machine to try things out."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from belvedere.cli.options import Json
from belvedere.cli.tables import console, new_table
from belvedere.cli.values import to_json
from belvedere.errors import SourceError

if TYPE_CHECKING:
    from belvedere.sources.servers import Server


class Action(StrEnum):
    UP = "up"
    DOWN = "down"
    STATUS = "status"


class Kind(StrEnum):
    POSTGRES = "postgres"
    MARIADB = "mariadb"


def sources(
    ctx: typer.Context,
    action: Annotated[Action, typer.Argument(help="What to do.", show_default=False)],
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where all data lies.", show_default=False)
    ],
    only: Annotated[Kind | None, typer.Option(help="Only one of them.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Start a real PostgreSQL and a real MariaDB on this machine.

    up starts them as processes that go on after this command, on loopback, set up to be followed;
    down stops them, and keeps the data; status shows how to reach them. Each has a user belvedere,
    who may do everything, and a database shop; the password is in a file.
    """
    servers = _servers(directory, only)
    if action is Action.UP:
        if not json:
            console().print("starting, the first time half a minute or more to fetch and make them")
        for server in servers:
            server.up()
        _show(servers, json)
        return
    there = [server for server in servers if server.exists]
    if not there:
        raise SourceError(
            f"{directory} has no servers: start them with belvedere sources up {directory}"
        )
    if action is Action.DOWN:
        _down(there, json)
    else:
        _show(there, json)


def _servers(directory: Path, only: Kind | None) -> list[Server]:
    from belvedere.sources.servers import MariaDBServer, PostgresServer

    kinds: list[type[Server]] = [PostgresServer, MariaDBServer]
    return [kind(directory / kind.kind) for kind in kinds if only in (None, kind.kind)]


def _down(servers: list[Server], json: bool) -> None:
    stopped = [server.kind for server in servers if server.down()]
    if json:
        typer.echo(to_json({"stopped": stopped}))
        return
    said = f"stopped {', '.join(stopped)}" if stopped else "nothing was running"
    place = servers[0].directory.parent
    console().print(f"{said}; the data stays in {escape(str(place))}", soft_wrap=True)


def _show(servers: list[Server], json: bool) -> None:
    found = [{**asdict(s.address), "pid": s.pid, "running": s.is_running()} for s in servers]
    if json:
        typer.echo(to_json(found))
        return
    names = ("type", "host", "port", "user", "database", "password_file")
    table = new_table(*names, "state", right=("port",))
    for each in found:
        state = "running" if each["running"] else "not running"
        table.add_row(*(escape(str(each[name])) for name in names), state)
    console().print(table)
