"""SQL statements: each kind has a module here, does one thing to a database and answers with a
result.

    create.py      CREATE TABLE, CREATE MATERIALIZED VIEW
    drop.py        DROP
    insert.py      INSERT
    update.py      UPDATE and DELETE
    show.py        SHOW, DESCRIBE
    explain.py     EXPLAIN, EXPLAIN COST, EXPLAIN WHY
    refresh.py     REFRESH
    transaction.py BEGIN, COMMIT, ROLLBACK
    source.py      CREATE SOURCE, ALTER SOURCE, DROP SOURCE
    refusal.py     what INSERT, UPDATE and DELETE refuse, in their words

A SELECT is `result.Query`, or `result.Lookup` if it was planned before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from belvedere.catalog.history import AsOf
from belvedere.errors import SqlError
from belvedere.prepared import find_prepared
from belvedere.result import Lookup, Query, Result
from belvedere.sql.dialect import Token, check_query_at, parse, query_start, words_of
from belvedere.sql.parameters import Parameters, bind, refuse_parameters
from belvedere.sql.versions import version_of, without_versions
from belvedere.statements import create, drop, explain, insert, refresh, show, update
from belvedere.statements.explain import cost
from belvedere.statements.show import create_text
from belvedere.statements.source import is_about_source, source_statement

if TYPE_CHECKING:
    from belvedere.database import Database

__all__ = ["cost", "create_text", "execute", "repeat"]

_STATEMENTS = (
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "ALTER",
    "DROP",
    "SHOW",
    "DESCRIBE",
    "EXPLAIN",
    "REFRESH",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
)


def execute(
    db: Database, text: str, params: Parameters | None = None, as_of: AsOf | None = None
) -> Result:
    """Run one statement, with values for its parameters; a query as of an epoch or a moment."""
    words = words_of(text)
    if as_of is not None and (not words or words[0].text.upper() not in _QUERIES):
        raise SqlError("as_of is for queries: other statements are about what is there now")
    if words and words[0].text.upper() in _COMMANDS:
        return _COMMANDS[words[0].text.upper()](db, text, words, params)
    if is_about_source(words):
        return source_statement(db, text, words, params)
    statement = parse(text)
    if isinstance(statement, exp.Query) and (written := version_of(statement)) is not None:
        if as_of is not None:
            raise SqlError("the query says itself as of when it reads: leave as_of out")
        statement, as_of = parse(without_versions(text)), written
    if not isinstance(statement, _WITH_PARAMETERS):
        refuse_parameters(statement, words[0].text.upper())
    values = bind(statement, params)
    for kind, run in _KINDS.items():
        if isinstance(statement, kind):
            return run(db, statement, text)
    if isinstance(statement, exp.Query):
        return Query(db, statement, values, as_of)
    raise _not_understood(text, words)


def repeat(db: Database, text: str, params: Parameters | None) -> Result | None:
    """The answer to a statement that needs no plan any more, if it is one; see `prepared`."""
    prepared = find_prepared(db, text)
    key = prepared.key(params) if prepared is not None else None
    if prepared is None or key is None:
        return None
    values = copy(params)  # the caller may change them before anybody asks for the answer
    return Lookup(db, prepared.lookup, key, lambda: execute(db, text.strip(), values))


def _not_understood(text: str, words: Sequence[Token]) -> SqlError:
    first = words[0].text.upper()
    start = query_start(text) if first == "CREATE" else None
    if start is not None:
        # the parser gives up on a CREATE without a word if its SELECT is not valid
        check_query_at(text, start)
    if first in _STATEMENTS:
        return SqlError(f"this form of {first} is not understood: docs/sql.md lists those that are")
    return SqlError(
        f"{first} is not understood here: a statement begins with {', '.join(_STATEMENTS[:-1])} or"
        f" {_STATEMENTS[-1]}"
    )


_KINDS: dict[type[exp.Expression], Callable[[Database, Any, str], Result]] = {
    exp.Create: create.create,
    exp.Drop: lambda db, statement, _: drop.drop(db, statement),
    exp.Insert: lambda db, statement, _: insert.insert(db, statement),
    exp.Update: lambda db, statement, _: update.update(db, statement),
    exp.Delete: lambda db, statement, _: update.delete(db, statement),
    exp.Describe: lambda db, statement, _: show.describe(db, statement),
    exp.Refresh: lambda db, statement, _: refresh.refresh(db, statement),
}
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "(")
_WITH_PARAMETERS = (exp.Query, exp.Insert, exp.Update, exp.Delete)
_Command: TypeAlias = "Callable[[Database, str, Sequence[Token], Parameters | None], Result]"
_COMMANDS: dict[str, _Command] = {"SHOW": show.show, "EXPLAIN": explain.explain}
