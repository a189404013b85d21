"""The program `belvedere`: its commands and the options that all of them share.

A command's module is loaded when that command is run or explained; `belvedere --help` only needs
the list of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer

from belvedere.cli.commands import COMMANDS, Listed
from belvedere.cli.failure import Guarded
from belvedere.cli.place import Place

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PATH",
        help="The database; also BELVEDERE_DB, or else the current directory.",
    ),
]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")]

ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Change nothing, also where there is a right to.")
]

_DEFAULTS = {"db": None, "traceback": False, "read_only": False}
_BY_NAME = {listed.name: listed for listed in COMMANDS}
_LOOKS: dict[str, Any] = {
    "rich_markup_mode": "rich",
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class Commands(Guarded):
    """The group of all commands.

    What it lists are names with one line each; the one that is wanted is loaded.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load(_BY_NAME[name]), rest


app = typer.Typer(
    name="belvedere",
    cls=Commands,
    help="Materialized views over key-value tables, kept correct incrementally on Apache Spark.",
    epilog="Every command explains itself: [cyan]belvedere COMMAND --help[/cyan]",
    no_args_is_help=True,
    **_LOOKS,
)


def _version(shown: bool) -> None:
    if shown:
        from belvedere import __version__

        typer.echo(f"belvedere {__version__}")
        raise typer.Exit


RootDb = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PATH",
        envvar="BELVEDERE_DB",
        help="The database. Default: the current directory.",
    ),
]
Version = Annotated[
    bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
]


@app.callback()
def shared(
    ctx: typer.Context,
    db: RootDb = None,
    traceback: Traceback = False,
    read_only: ReadOnly = False,
    version: Version = False,
) -> None:
    ctx.obj = Place(db, traceback, read_only)


def load(listed: Listed) -> Any:
    """The command itself, from the function that its module has."""
    function = getattr(import_module(f"belvedere.cli.{listed.home}"), listed.home)
    examples = "\n\n".join(
        ["[bold]Examples[/bold]", *(f"[cyan]{_escaped(line)}[/cyan]" for line in listed.examples)]
    )
    alone = typer.Typer(add_completion=False, **_LOOKS)
    alone.command(listed.name, epilog=examples, rich_help_panel=listed.panel)(
        _sharing(function, listed.database)
    )
    return typer.main.get_command(alone)


def _escaped(line: str) -> str:
    return line.replace("[", "\\[")


def _sharing(function: Callable[..., None], database: bool) -> Callable[..., None]:
    """The function with --traceback, and --db and --read-only if it needs a database, accepted
    after the command's name too.
    """
    hints = get_type_hints(function, include_extras=True)
    extra: dict[str, Any] = (
        {"db": Db, "read_only": ReadOnly, "traceback": Traceback}
        if database
        else {"traceback": Traceback}
    )

    def command(ctx: typer.Context, **options: Any) -> None:
        given = Place(
            options.pop("db", None), options.pop("traceback"), options.pop("read_only", False)
        )
        ctx.obj = ctx.obj.overridden(given) if isinstance(ctx.obj, Place) else given
        ctx.find_root().obj = ctx.obj  # where a failure looks for --traceback
        function(ctx, **options)

    own = [
        p.replace(annotation=hints[p.name]) for p in inspect.signature(function).parameters.values()
    ]
    added = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS[n], annotation=a)
        for n, a in extra.items()
    ]
    command.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {**hints, **extra}
    command.__doc__, command.__name__, command.__module__ = (
        function.__doc__,
        function.__name__,
        function.__module__,
    )
    return command


def _list(listed: Listed) -> None:
    """Name the command in the group; `Commands` puts the real one in its place."""
    app.command(listed.name, short_help=listed.line, rich_help_panel=listed.panel)(lambda: None)


for _each in COMMANDS:
    _list(_each)
