"""One root error; every message says what happened and what the user can do.

BelvedereError
├── SchemaError          a table or row does not fit: unknown column, wrong type, key too long
├── SqlError             a statement cannot be understood
│   ├── Unsupported      understood, but not maintained; names the construct and the way around
│   │   ├── Refused          a part of another statement that is understood, but not done
│   │   └── UnknownFunction  a function that no view can use; `.name` is what the user calls it
│   └── NotAnswered      a query that only Spark answers; names the construct and the way around
├── CatalogError         a name exists already, or does not exist
│   └── NotKept          the rows of a source's relation are not here; `.relation` is its name
├── StoreError           the store refused: full, damaged, of another version
│   ├── StoreFull        no room left; nothing was written
│   ├── Conflict         somebody wrote the table, or a row, meanwhile; nothing was written
│   │   └── RowConflict      a row that a transaction has read; `.table` and `.key` name it
│   ├── TooLarge         more than one transaction takes; nothing was written
│   ├── Dropped          the table was dropped; nothing was read or written
│   ├── Damaged          bytes of the store are not what was written
│   ├── Unreachable      a server did not answer; whether it did what was asked is not known
│   └── TableGone        a table of the store is not there, or disabled
├── Stale                an attempt, or a reader, lives in the past (rules R1, R3); retried inside
├── HistoryGone          an epoch that was asked for is not kept; `.oldest` says which one is
├── TransactionError     a transaction has ended, is too large, or cannot do what was asked
├── TokenError           a session's token cannot be read, or is another database's
├── LeaseLost            another coordinator took over
├── Timeout              waited as long as allowed; `.reached` says how far it got
├── ViewNotReady         the view is still being built
├── ViewInError          the view's expression raises for some rows; `.rows` lists them (rule R9)
├── SourceError          a source, or a relation of it, cannot be used so; says what to change
│   ├── SourceUnreachable  the server did not answer; tried again inside
│   └── SourceLost         the source has forgotten what was not read yet: load again
├── HistoryError         a history for `belvedere check` cannot be read, or is another database's
└── PipelineError        the pipeline stopped; the cause is chained

Rules have a page of their own: docs/rules.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class BelvedereError(Exception):
    """The root of all errors that Belvedere raises on purpose."""


class SchemaError(BelvedereError):
    pass


class SqlError(BelvedereError):
    pass


class Unsupported(SqlError):
    def __init__(self, construct: str, instead: str = "") -> None:
        self.construct, self.instead = construct, instead
        super().__init__(
            f"{construct} is not supported in a maintained view"
            + (f": {instead}" if instead else "")
        )


class CatalogError(BelvedereError):
    pass


class NotKept(CatalogError):
    def __init__(self, relation: str) -> None:
        self.relation = relation
        source, _, name = relation.partition(".")
        super().__init__(
            f"the rows of {relation} are not kept here, only views over it are: read it at its"
            f" source, or have it kept with ALTER SOURCE {source} COPY {name}"
        )


class StoreError(BelvedereError):
    pass


class Unreachable(StoreError):
    pass


class TableGone(StoreError):
    pass


class StoreFull(StoreError):
    pass


class Conflict(StoreError):
    pass


class RowConflict(Conflict):
    def __init__(self, table: str | int, key: Any) -> None:
        # name and values; id and bytes where names are not known
        self.table, self.key = table, key
        super().__init__(
            f"the row of table {table} with key {key!r} was changed by somebody else after this"
            " transaction had read it: nothing was written. Do the transaction again;"
            " db.transact(...) does that by itself"
        )


class TooLarge(StoreError):
    pass


class Dropped(StoreError):
    def __init__(self, table: str | int) -> None:
        self.table = table  # its name, or its id where names are not known
        again = (
            ": nothing was read or written. If there is a table of that name now, get it with"
            f" db.table({table!r})"
        )
        super().__init__(f"table {table} was dropped{again if isinstance(table, str) else ''}")


class Damaged(StoreError):
    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what}: the store is damaged there. Restore the whole directory from one backup, or"
            " see what belvedere inspect advises"
        )


class Stale(BelvedereError):
    pass


class HistoryGone(BelvedereError):
    def __init__(self, message: str, oldest: int | None = None) -> None:
        self.oldest = oldest  # the oldest epoch that can be read, if it is known
        super().__init__(message)


class TransactionError(BelvedereError):
    pass


class TokenError(BelvedereError):
    pass


class LeaseLost(BelvedereError):
    pass


class Timeout(BelvedereError):
    def __init__(self, message: str, reached: Any = None) -> None:
        self.reached = reached
        super().__init__(message)


class ViewNotReady(BelvedereError):
    pass


class ViewInError(BelvedereError):
    def __init__(self, view: str, rows: Sequence[dict[str, Any]], count: int | None = None) -> None:
        self.view, self.rows = view, list(rows)  # the first of them, if there are many
        first = f"; first: {self.rows[0]}" if self.rows else ""
        what = (
            f"view {view} is in error for {len(self.rows) if count is None else count:,}"
            f" row(s){first}"
        )
        super().__init__(
            f"{what}. Correct or delete those rows of the base table; the view then recovers by"
            " itself"
        )


class PipelineError(BelvedereError):
    pass


class SourceError(BelvedereError):
    pass


class SourceUnreachable(SourceError):
    pass


class SourceLost(SourceError):
    pass


class HistoryError(BelvedereError):
    pass
