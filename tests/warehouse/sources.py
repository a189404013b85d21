"""Sources with two channels that run apart: a log that is followed, and answers to queries.

A transaction is first in the log and later visible to queries, perhaps after one that was logged
behind it if they have no row in common: this is what real servers do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from belvedere.warehouse.evaluation import Wanted
from belvedere.warehouse.machine import INSERT, Transaction
from belvedere.warehouse.processor import Found
from belvedere.warehouse.rows import Key, Row, Shape

Tables = dict[int, dict[Key, Row]]  # per member


def execute(shape: Shape, tables: Tables, transaction: Transaction) -> None:
    for update in transaction.updates:
        rows, key = tables[update.member], shape.members[update.member].key_of(update.row)
        if update.sign == INSERT:
            assert key not in rows
            rows[key] = update.row
        else:
            assert rows.pop(key) == update.row


@dataclass(slots=True)
class SimulatedSource:
    name: str
    shape: Shape
    initial: Tables
    committed: list[Transaction] = field(default_factory=list)
    visible: set[str] = field(default_factory=set)

    def commit(self, transaction: Transaction, shown: bool) -> None:
        self.committed.append(transaction)
        if shown:
            self.visible.add(transaction.id)

    def hidden(self) -> list[Transaction]:
        """Those that could become visible next: no earlier one that is hidden touches a row of
        theirs.
        """
        found, blocked = [], set[tuple[int, Key]]()
        for transaction in self.committed:
            if transaction.id not in self.visible:
                touched = self._touched(transaction)
                if not touched & blocked:
                    found.append(transaction)
                blocked |= touched
        return found

    def evaluate(self, wanted: Iterable[Wanted]) -> Found:
        tables = {n: dict(rows) for n, rows in self.initial.items()}
        shown = [t for t in self.committed if t.id in self.visible]
        for transaction in shown:
            execute(self.shape, tables, transaction)
        rows: dict[int, list[Row]] = {}
        for w in wanted:
            rows.setdefault(w.member, []).extend(select(tables[w.member].values(), w))
        return Found(rows, frozenset(self.visible).__contains__, self._end())

    def _end(self) -> str:
        places = [n for n, t in enumerate(self.committed, 1) if t.id in self.visible]
        return str(max(places, default=0))

    def _touched(self, transaction: Transaction) -> set[tuple[int, Key]]:
        key_of = [m.key_of for m in self.shape.members]
        return {(u.member, key_of[u.member](u.row)) for u in transaction.updates}


def select(rows: Iterable[Row], wanted: Wanted) -> Sequence[Row]:
    if wanted.values is None:
        return list(rows)
    values = set(wanted.values)
    return [row for row in rows if tuple(row[c] for c in wanted.columns) in values]
