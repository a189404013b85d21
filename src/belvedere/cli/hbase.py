"""belvedere hbase: a real HBase on this machine to try things out, and what a cluster needs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from belvedere.cli.options import Json
from belvedere.cli.tables import console, new_table, plural
from belvedere.cli.values import to_json
from belvedere.errors import StoreError

if TYPE_CHECKING:
    from belvedere.stores.hbase.local import Cluster


class Action(StrEnum):
    UP = "up"
    DOWN = "down"
    STATUS = "status"
    INSTALL = "install"
    UNINSTALL = "uninstall"


def hbase(
    ctx: typer.Context,
    action: Annotated[Action, typer.Argument(help="What to do.", show_default=False)],
    place: Annotated[
        str,
        typer.Argument(
            metavar="DIR|URL",
            help="up, down, status: the cluster's directory. install, uninstall: hbase://...",
            show_default=False,
        ),
    ],
    region_servers: Annotated[
        int, typer.Option(min=1, max=9, help="With up: how many region servers.")
    ] = 2,
    namespace: Annotated[
        str, typer.Option(help="With up and status: that of the URL which is printed.")
    ] = "belvedere",
    json: Json = False,
) -> None:
    """Start a real HBase on this machine, or prepare another one.

    up starts ZooKeeper, a master and region servers as processes that go on after this command,
    with all data in DIR; down stops them, and keeps the data. install adds what captures changes to
    a cluster that is there already, and says what an operator must do by hand; uninstall takes it
    away.
    """
    if action in (Action.INSTALL, Action.UNINSTALL):
        _prepare(action, place, json)
        return
    if "://" in place:
        raise StoreError(f"{action} needs the directory of a cluster on this machine, not a URL")
    from belvedere.stores.hbase.local import Cluster

    cluster = Cluster(place)
    if action is Action.UP:
        _up(cluster, region_servers, namespace, json)
    elif not cluster.exists:
        raise StoreError(f"{place} has no HBase: start one with belvedere hbase up {place}")
    elif action is Action.DOWN:
        _down(cluster, json)
    else:
        _status(cluster, namespace, json)


def _up(cluster: Cluster, region_servers: int, namespace: str, json: bool) -> None:
    if not json:
        console().print(
            "starting ZooKeeper, a master and"
            f" {plural(region_servers, 'region server')}: half a minute; the first time some"
            " minutes more, to fetch HBase",
            soft_wrap=True,
        )
    cluster.up(region_servers)
    _status(cluster, namespace, json)


def _down(cluster: Cluster, json: bool) -> None:
    stopped = [process.name for process in cluster.down()]
    if json:
        typer.echo(to_json({"stopped": stopped}))
        return
    said = f"stopped {', '.join(stopped)}" if stopped else "nothing was running"
    console().print(f"{said}; the data stays in {escape(str(cluster.directory))}", soft_wrap=True)


def _status(cluster: Cluster, namespace: str, json: bool) -> None:
    running = {process.name for process in cluster.running()}
    url = cluster.url(namespace)
    if json:
        processes = [
            {"name": p.name, "pid": p.pid, "port": p.port, "running": p.name in running}
            for p in cluster.processes()
        ]
        typer.echo(to_json({"url": url, "processes": processes}))
        return
    table = new_table("process", "pid", "port", "state", right=("pid", "port"))
    for process in cluster.processes():
        state = "running" if process.name in running else "not running"
        table.add_row(process.name, str(process.pid), str(process.port), state)
    out = console()
    out.print(table)
    out.print(f"URL: [cyan]{escape(url)}[/cyan]", soft_wrap=True)


def _prepare(action: Action, place: str, json: bool) -> None:
    from belvedere.stores.hbase.install import install, manual_steps, uninstall
    from belvedere.stores.hbase.url import parse

    address = parse(place)
    if action is Action.UNINSTALL:
        by_hand, done = "", uninstall(address.cluster, address.namespace)
    elif not address.capture:
        raise StoreError("install needs a directory for captured changes: add ?capture=DIRECTORY")
    else:
        by_hand = manual_steps(address.capture)
        done = install(address.cluster, address.namespace, address.capture)
    if json:
        typer.echo(to_json({"by_hand": by_hand, "done": done}))
        return
    out = console()
    if by_hand:
        out.print(escape(by_hand), soft_wrap=True)
    out.print("\n".join(f"done: {escape(line)}" for line in done) or "there was nothing to do")
