"""belvedere sql: a statement, a script, or a prompt."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from belvedere.catalog.history import AsOf
from belvedere.cli.options import AsOfText, Json, as_of
from belvedere.cli.tables import console, plural, rows_table
from belvedere.cli.terminal import database
from belvedere.cli.values import Parameters, parameters_from_texts, to_json
from belvedere.database import Database
from belvedere.errors import SqlError
from belvedere.result import Message, Result
from belvedere.sql.dialect import split
from belvedere.sql.parameters import check_parameters, has_names
from belvedere.statements.transaction import Conversation


def sql(
    ctx: typer.Context,
    statement: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="One statement, or several with ; between.", show_default=False
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            exists=True,
            dir_okay=False,
            help="A script; every statement is run in turn.",
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="[NAME=]VALUE",
            help="The value of a ?, or as name=value of :name; may be given several times. 7 is a"
            " number, 1.5 a decimal, 1e3 a double, X'00ff' bytes, true, false and NULL are what"
            ' they say, all else is text, and so is "7" in double quotes.',
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            "-n",
            min=0,
            metavar="N",
            help="Rows of an answer to show on a terminal; 0: all.",
        ),
    ] = 200,
    past: AsOfText = None,
    json: Json = False,
) -> None:
    """Run a statement, a script, or a prompt.

    Without a statement, the script on standard input is run; if that is a terminal, there is a
    prompt.
    """
    if statement is not None and file is not None:
        raise typer.BadParameter("give a statement or a file, not both", param_hint="--file")
    with database(ctx) as db:
        if statement is None and file is None and sys.stdin.isatty():
            from belvedere.cli.prompt import prompt

            if param:
                raise typer.BadParameter("the prompt takes no parameters", param_hint="--param")
            if past:
                raise typer.BadParameter("the prompt shows what is there now", param_hint="--as-of")
            return prompt(db, limit)
        text = _text(statement, file)
        values = parameters_from_texts(param, has_names(text)) if param else None
        run_script(db, text, json, limit, values, as_of(past))


def _text(statement: str | None, file: Path | None) -> str:
    """What there is to run, from wherever it comes; the mark that some programs put before UTF-8 is
    skipped.
    """
    if statement is not None:
        place, raw = "the statement", statement.encode("utf-8", "surrogateescape")
    elif file is not None:
        place, raw = str(file), file.read_bytes()
    else:
        place, raw = "standard input", sys.stdin.buffer.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SqlError(
            f"{place} is not UTF-8 text, see line {line}: convert it to UTF-8 first"
        ) from None


def run_script(
    db: Database,
    text: str,
    json: bool = False,
    limit: int = 200,
    values: Parameters | None = None,
    past: AsOf | None = None,
) -> None:
    """Every statement in turn; the first that fails ends the script, those before it stay done,
    but for a transaction that is open.
    """
    statements = split(text)
    if not statements:
        raise SqlError("there is no statement in this text")
    if values and len(statements) > 1:
        raise SqlError(f"parameters are for one statement, and this script has {len(statements)}")
    parameters = check_parameters(values)
    with Conversation(db) as conversation:
        for number, one in enumerate(statements, 1):
            try:
                began = time.perf_counter()
                show(conversation.run(one, parameters, past), began, json, limit)
            except SqlError as error:
                if len(statements) > 1:
                    error.args = (f"statement {number} of {len(statements)}: {error}",)
                raise


def show(result: Result, began: float, json: bool, limit: int) -> None:
    if isinstance(result, Message) and not json:
        typer.echo(result.text)
        return
    table = result.to_arrow()
    if json:
        for row in table.to_pylist():
            typer.echo(to_json(row))
        return
    out = console()
    shown = table.slice(0, limit) if limit and out.is_terminal else table
    out.print(rows_table(shown.to_pylist(), table.column_names))
    cut = (
        f", {shown.num_rows:,} shown (--limit 0 shows all)"
        if shown.num_rows < table.num_rows
        else ""
    )
    out.print(
        f"{plural(table.num_rows, 'row')} in {time.perf_counter() - began:.3f} s{cut}", style="dim"
    )
