"""The program `belvedere`: its commands, the options that all of them share, and how it fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from belvedere.cli.bench import bench
from belvedere.cli.catch_up import catch_up
from belvedere.cli.delete import delete
from belvedere.cli.demo import demo
from belvedere.cli.explain import explain
from belvedere.cli.failure import Commands
from belvedere.cli.get import get
from belvedere.cli.import_rows import import_rows
from belvedere.cli.init import init
from belvedere.cli.metrics import metrics
from belvedere.cli.place import Place
from belvedere.cli.put import put
from belvedere.cli.run import run
from belvedere.cli.scan import scan
from belvedere.cli.sql import sql
from belvedere.cli.status import status
from belvedere.cli.verify import verify
from belvedere.cli.views import views

READ_AND_WRITE, KEEP, TRY = "Tables and views", "Keeping views up to date", "Start here"

Db = Annotated[str | None, typer.Option("--db", metavar="PATH", help="The database; also BELVEDERE_DB, or else the current directory.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")]

ReadOnly = Annotated[bool, typer.Option("--read-only", help="Change nothing, also where there is a right to.")]

_DEFAULTS = {"db": None, "traceback": False, "read_only": False}

app = typer.Typer(
    name="belvedere",
    cls=Commands,
    help="Materialized views over key-value tables, kept correct incrementally on Apache Spark.",
    epilog="Every command explains itself: [cyan]belvedere COMMAND --help[/cyan]",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(shown: bool) -> None:
    if shown:
        from belvedere import __version__

        typer.echo(f"belvedere {__version__}")
        raise typer.Exit


RootDb = Annotated[
    str | None, typer.Option("--db", metavar="PATH", envvar="BELVEDERE_DB", help="The database. Default: the current directory.")
]
Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")]


@app.callback()
def shared(
    ctx: typer.Context,
    db: RootDb = None,
    traceback: Traceback = False,
    read_only: ReadOnly = False,
    version: Version = False,
) -> None:
    ctx.obj = Place(db, traceback, read_only)


def _add(panel: str, function: Callable[..., None], *examples: str, name: str | None = None, database: bool = True) -> None:
    listed = "\n\n".join(["[bold]Examples[/bold]", *(f"[cyan]{_escaped(line)}[/cyan]" for line in examples)])
    app.command(name or function.__name__, epilog=listed, rich_help_panel=panel)(_sharing(function, database))


def _escaped(line: str) -> str:
    return line.replace("[", "\\[")


def _sharing(function: Callable[..., None], database: bool) -> Callable[..., None]:
    """The function with --traceback, and --db and --read-only if it needs a database, accepted after the command's name too."""
    hints = get_type_hints(function, include_extras=True)
    extra: dict[str, Any] = {"db": Db, "read_only": ReadOnly, "traceback": Traceback} if database else {"traceback": Traceback}

    def command(ctx: typer.Context, **options: Any) -> None:
        given = Place(options.pop("db", None), options.pop("traceback"), options.pop("read_only", False))
        ctx.obj = ctx.obj.overridden(given) if isinstance(ctx.obj, Place) else given
        ctx.find_root().obj = ctx.obj  # where a failure looks for --traceback
        function(ctx, **options)

    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(function).parameters.values()]
    added = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS[n], annotation=a) for n, a in extra.items()]
    command.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {**hints, **extra}
    command.__doc__, command.__name__, command.__module__ = function.__doc__, function.__name__, function.__module__
    return command


_add(TRY, demo, "belvedere demo", "belvedere demo shop --seconds 60 --rate 20000", database=False)
_add(TRY, init, "belvedere init shop", "belvedere init shop --slots 8", database=False)
_add(
    READ_AND_WRITE,
    sql,
    'belvedere --db shop sql "CREATE TABLE orders (id STRING, region STRING, amount BIGINT, PRIMARY KEY (id))"',
    'belvedere --db shop sql "SELECT * FROM revenue ORDER BY total DESC" --json',
    "belvedere --db shop sql -f views.sql",
    "belvedere --db shop sql            # a prompt, with history; statements end with ;",
)
_add(
    READ_AND_WRITE,
    put,
    "belvedere put orders id=o1 region=emea amount=7",
    """belvedere put orders '{"id": "o1", "region": "emea", "amount": 7}'""",
)
_add(READ_AND_WRITE, get, "belvedere get orders o1", "belvedere get by_customer c17 o1 --json", "belvedere get readings -- -5")
_add(READ_AND_WRITE, delete, "belvedere delete orders o1", "belvedere delete lines o1 2     # a key of two columns")
_add(
    READ_AND_WRITE,
    import_rows,
    "belvedere import orders orders.csv",
    "belvedere import orders orders.parquet --batch 100000",
    "belvedere import orders dirty.jsonl --skip-bad",
    "zcat orders.csv.gz | belvedere import orders - --format csv",
    name="import",
)
_add(
    READ_AND_WRITE, scan, "belvedere scan orders --limit 10", "belvedere scan by_customer c17", "belvedere scan revenue --json | jq .total"
)
_add(READ_AND_WRITE, views, "belvedere views", "belvedere views --json")
_add(
    READ_AND_WRITE, explain, "belvedere explain revenue", 'belvedere explain "SELECT region, max(amount) AS m FROM orders GROUP BY region"'
)
_add(KEEP, run, "belvedere --db shop run", "belvedere --db shop run --every 10", "belvedere --db shop run --available-now")
_add(KEEP, catch_up, "belvedere --db shop catch-up", "belvedere --db shop catch-up --timeout 60 --json", name="catch-up")
_add(KEEP, status, "belvedere status", "belvedere status --watch", "belvedere status --json | jq '.views[].lag_operations'")
_add(KEEP, verify, "belvedere verify", "belvedere verify revenue --repair", "belvedere verify revenue --repair --yes")
_add(KEEP, metrics, "belvedere metrics", "belvedere metrics > /var/lib/node_exporter/belvedere.prom")
_add(
    TRY,
    bench,
    "belvedere bench --quick",
    "belvedere bench --views V2,V3 --scenarios maintain,freshness --json results.json",
    "belvedere bench --plot throughput.png",
    database=False,
)


def main() -> None:
    app(prog_name="belvedere")
