"""BEGIN, COMMIT and ROLLBACK: which of several statements belong together.

A statement that fails inside a transaction has done nothing, and the transaction goes on without
it; who runs a script ends it there. COMMIT ends the transaction, whatever it answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from belvedere import statements
from belvedere.catalog.history import AsOf
from belvedere.errors import SqlError
from belvedere.result import Message, Result
from belvedere.sql.dialect import Token, words_of
from belvedere.sql.parameters import Parameters
from belvedere.transaction import Transaction

if TYPE_CHECKING:
    from belvedere.database import Database

_FORMS = {
    "BEGIN": (("BEGIN",), ("BEGIN", "WORK"), ("BEGIN", "TRANSACTION")),
    "START": (("START", "TRANSACTION"),),
    "COMMIT": (("COMMIT",), ("COMMIT", "WORK"), ("COMMIT", "TRANSACTION")),
    "ROLLBACK": (("ROLLBACK",), ("ROLLBACK", "WORK"), ("ROLLBACK", "TRANSACTION")),
}


class Conversation:
    """The statements of one user, one after the other. `with` ends it as a script ends."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._open: Transaction | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        was_open, count = self.is_in_transaction, self.roll_back()
        if was_open and kind is None:
            raise SqlError(
                f"the text ends inside a transaction: its {count:,} operation(s) were rolled back."
                " End it with COMMIT, or with ROLLBACK"
            )

    @property
    def is_in_transaction(self) -> bool:
        return self._open is not None

    def run(self, text: str, params: Parameters | None = None, as_of: AsOf | None = None) -> Result:
        words = words_of(text)
        first = words[0].text.upper() if words else ""
        if first in _FORMS:
            _check_form(words)
            return {"COMMIT": self._commit, "ROLLBACK": self._rollback}.get(first, self._begin)()
        if self._open is None:
            return statements.execute(self._db, text, params, as_of)
        if as_of is not None:
            raise SqlError("a transaction reads tables as they are now: leave as_of out")
        return self._open.sql(text, params)

    def roll_back(self) -> int:
        """Give up what is open; returns how many operations it had."""
        begun, self._open = self._open, None
        if begun is None:
            return 0
        begun.rollback()
        return begun.operations

    def _begin(self) -> Message:
        if self._open is not None:
            raise SqlError(
                "a transaction is open already, and there are none inside of others: COMMIT or"
                " ROLLBACK it first"
            )
        self._open = Transaction(self._db)
        return Message("transaction begun")

    def _commit(self) -> Message:
        begun = self._taken("COMMIT")
        begun.commit()
        return Message(f"transaction committed, {begun.operations:,} operation(s)")

    def _rollback(self) -> Message:
        begun = self._taken("ROLLBACK")
        begun.rollback()
        return Message(f"transaction rolled back, {begun.operations:,} operation(s)")

    def _taken(self, word: str) -> Transaction:
        begun, self._open = self._open, None
        if begun is None:
            raise SqlError(f"{word}: there is no transaction, begin one with BEGIN")
        return begun


def _check_form(words: Sequence[Token]) -> None:
    form = tuple(word.text.upper() for word in words)
    known = _FORMS[form[0]]
    if form not in known:
        raise SqlError(
            f"this form of {form[0]} is not understood: write"
            f" {' or '.join(' '.join(each) for each in known)}"
        )
