"""Transactions: rows of several tables, read and written as if nobody else were there.

    with db.transaction() as t:
        account = t.table("accounts").get(1)
        t.table("accounts").put({**account, "balance": account["balance"] - 5})
        t.table("transfers").put({"id": 9, "amount": 5})

All reads are of one moment, that of the first one, and see what the transaction has written. At the
end of the block the rows that were read by their keys are compared with what they are now, and all
is written at once; or nothing, if one of them has changed, or if the block raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.state import CatalogState
from belvedere.collected import Collected, CollectingStore
from belvedere.database import Database
from belvedere.errors import Dropped, RowConflict, SqlError, StoreError, TransactionError
from belvedere.readers.base_rows import codecs
from belvedere.stores.base import Store, TableId
from belvedere.table import Table
from belvedere.types import Vector

if TYPE_CHECKING:
    from belvedere.result import Result

_Answer = TypeVar("_Answer")
_ENDED = "this transaction has ended: begin another one with db.transaction()"
_STATEMENTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES", "FROM", "(")


class Transaction:
    """Made by `Database.transaction`; for one thread."""

    def __init__(self, db: Database) -> None:
        if not db.store.capabilities.transactions:
            raise StoreError(
                f"{db.store.url} has no transactions over tables: write each row or call by itself"
            )
        self._db, self._store = db, db.store
        self._collected = Collected(db.store.base)
        self._collecting = cast(Store, CollectingStore(self._store, self._collected))
        self._inside: _Inside | None = None  # for statements; who only puts and gets has none
        self._tables: dict[TableId, Table] = {}  # that were used; some may be dropped by then
        self.position = Vector()  # of the log behind it, once it is written

    def __enter__(self) -> Self:
        self._collected.check_open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Whatever was raised, nothing is written then."""
        if kind is not None:
            self.rollback()
        elif self.is_open:
            self.commit()

    def __repr__(self) -> str:
        return f"<Transaction of {self._store.url}>"

    @property
    def operations(self) -> int:
        """How many there are so far."""
        return self._collected.count

    def table(self, name: str) -> Table:
        """A table whose reads and writes belong to this transaction."""
        self._collected.check_open()
        outside = self._db.table(name)
        found = self._tables.get(outside.id)
        if found is None:
            found = self._tables[outside.id] = outside.within(self._collecting)
        return found

    def sql(self, text: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> Result:
        """INSERT, UPDATE, DELETE, or a SELECT over tables, which is answered at once."""
        from belvedere.result import Message, Rows
        from belvedere.sql.dialect import split, words_of

        self._collected.check_open()
        for statement in split(text):
            _check_statement(words_of(statement)[0].text.upper())
        if self._inside is None:
            self._inside = _Inside(self._db, self._collecting)
        answer = self._inside.sql(text, params)
        return answer if isinstance(answer, Message) else Rows(answer.to_arrow())

    def commit(self) -> Vector:
        """Write it, as the end of the block does; returns the position of the log after it."""
        self._collected.check_open()
        self._collected.end_it(_ENDED)
        if not self._collected.count:
            return self.position  # what it has read was there, all at one moment
        try:
            self.position = self._collected.written()
        except RowConflict as error:
            raise self._named(error) from None
        except Dropped as error:
            raise Dropped(self._used(error.table, error).name) from None
        if self._db.is_session:
            self._db.wrote(self.position)
        return self.position

    def rollback(self) -> None:
        """Write nothing."""
        self._collected.end_it("this transaction was rolled back: begin another one")

    @property
    def is_open(self) -> bool:
        return not self._collected.why_ended

    def _named(self, error: RowConflict) -> RowConflict:
        table = self._used(error.table, error)
        key = codecs(table.schema)[0].decode_one(error.key)
        return RowConflict(table.name, key[0] if len(key) == 1 else tuple(key))

    def _used(self, table: str | TableId, error: Exception) -> Table | TableDefinition:
        used: list[Table | TableDefinition] = [*self._tables.values()]
        if self._inside is not None:
            used += self._inside.tables.values()
        for found in used:
            if found.id == table:
                return found
        raise error


class _Inside(Database):
    """The database as its tables are in a transaction, for tables and statements."""

    def __init__(self, outer: Database, store: Store) -> None:
        self.store = store
        self._cache, self.master, self.spark_conf = outer._cache, outer.master, outer.spark_conf
        self._spark = self._runner = None
        self._pipelines, self.prepared = [], {}
        self.tables: dict[str, TableDefinition] = {}  # that were used; some may be dropped by then

    def state(self) -> CatalogState:
        found = super().state()
        self.tables = {**self.tables, **found.tables} if self.tables else found.tables
        return found

    def await_session(self) -> None:
        """Who reads views asks this first."""
        raise SqlError(
            "a transaction reads tables: a view is as of an epoch, before what is written here."
            " Read it before or after the transaction"
        )


def _check_statement(word: str) -> None:
    if word in ("BEGIN", "START", "COMMIT", "ROLLBACK"):
        raise TransactionError(
            f"{word} inside db.transaction(): the transaction ends with its block; to write"
            " nothing, raise, or call rollback()"
        )
    if word not in _STATEMENTS:
        raise TransactionError(
            f"{word} cannot be a part of a transaction, which changes rows: INSERT, UPDATE, DELETE"
            " and SELECT can. Run it before or after"
        )


def repeat(
    begin: Callable[[], Transaction],
    work: Callable[[Transaction], _Answer],
    retries: int,
) -> _Answer:
    """Each conflict means that another transaction, or another write, went through: so all together
    go on, however many there are.
    """
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise TransactionError(f"retries is {retries!r}: use a whole number, 0 or more")
    for left in range(retries, -1, -1):
        try:
            with begin() as transaction:
                answer = work(transaction)
        except RowConflict:
            if not left:
                raise
        else:
            return answer
    raise AssertionError("the last try has answered, or raised")
