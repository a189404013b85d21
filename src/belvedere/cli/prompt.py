"""The SQL prompt: history, completion, statements over several lines that end with a semicolon."""

from __future__ import annotations

import os
import time
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import HTML
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]  # it has no types
from rich.console import Console
from rich.markup import escape

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.cli.failure import error_line, message
from belvedere.cli.sql import show
from belvedere.cli.tables import plural
from belvedere.database import Database
from belvedere.errors import BelvedereError, SqlError
from belvedere.sql.dialect import split
from belvedere.statements.transaction import Conversation

QUIT = {"quit", "exit", "\\q"}
HELP = """statements end with ;  and may span lines
  SHOW TABLES;   SHOW MATERIALIZED VIEWS;   DESCRIBE name;   EXPLAIN view;
  REFRESH MATERIALIZED VIEW name;
  CREATE TABLE t (id STRING, n BIGINT, PRIMARY KEY (id));
  CREATE MATERIALIZED VIEW v AS SELECT ...;
  CREATE SOURCE s TYPE postgres OPTIONS (host = '...', ...);   SHOW SOURCES;
  BEGIN; ...; COMMIT;   or ROLLBACK;   the prompt has a * meanwhile
  quit, or Ctrl-D, leaves"""
_WORDS = """select from where group by having order limit insert into values update set delete
create table materialized view as primary key drop show tables views describe explain refresh
alter source sources copy reload type options env begin commit rollback
count sum avg min max distinct and or not null between like in case when then else end with"""


def prompt(db: Database, limit: int) -> None:
    out = Console()
    path = db.store.url.removeprefix("belvedere:")
    out.print(
        f"[bold]Belvedere[/bold] on {escape(path)} [dim](type help; Ctrl-D leaves)[/dim]",
        highlight=False,
    )
    conversation = Conversation(db)
    try:
        _converse(db, conversation, limit, out)
    finally:
        if conversation.is_in_transaction:
            count = plural(conversation.roll_back(), "operation")
            out.print(f"the open transaction was rolled back, {count}", style="yellow")


def _converse(db: Database, conversation: Conversation, limit: int, out: Console) -> None:
    session = _session(db, conversation)
    while True:
        try:
            text = session.prompt().strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        word = text.rstrip(";").strip().lower()
        if word in QUIT:
            return
        if word in ("help", "\\h", "?"):
            out.print(HELP, highlight=False)
        elif word:
            _run(conversation, text, limit)


def _run(conversation: Conversation, text: str, limit: int) -> None:
    """Run what was typed; an error is shown and the prompt goes on.

    Ctrl-C gives up the statement. A transaction stays open: a statement that fails does nothing.
    """
    try:
        for statement in split(text):
            began = time.perf_counter()
            show(conversation.run(statement), began, json=False, limit=limit)
    except BelvedereError as error:
        Console(stderr=True).print(error_line(message(error)), soft_wrap=True)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted", style="yellow")


def is_complete(text: str) -> bool:
    """Whether Enter runs the text: it ends with a semicolon that is not inside a literal, or is a
    word for the prompt itself.
    """
    stripped = text.strip()
    if not stripped or stripped.lower() in {*QUIT, "help", "\\h", "?"}:
        return True
    try:
        return stripped.endswith(";") and not split(stripped)[-1].endswith(";")
    except (SqlError, IndexError):
        return False


def _session(db: Database, conversation: Conversation) -> PromptSession[str]:
    return PromptSession(
        lambda: _message(conversation),
        history=FileHistory(str(_history())),
        lexer=PygmentsLexer(SqlLexer),
        completer=WordCompleter(lambda: _words(db), ignore_case=True),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: HTML("<ansicyan>{}</ansicyan>").format(
            "... ".rjust(width)
        ),
        key_bindings=_keys(),
    )


def _message(conversation: Conversation) -> HTML:
    """The star says that what is written waits for COMMIT."""
    star = "*" if conversation.is_in_transaction else ""
    return HTML(f"<ansicyan><b>belvedere{star}&gt; </b></ansicyan>")


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _words(db: Database) -> list[str]:
    state = db.state()
    found: list[TableDefinition | ViewDefinition] = [*state.tables.values(), *state.views.values()]
    names = {r.name for r in found} | {name for r in found for name in r.schema.names}
    return sorted(names) + _WORDS.split()


def _history() -> Path:
    folder = (
        Path(os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()) / "belvedere"
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # no home directory, or a read-only one
        return Path(os.devnull)
    return folder / "history"
