"""Batches: which of the transactions that were received are taken together."""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.warehouse.machine import Transaction

Batch = tuple[list[Transaction], list[Transaction]]  # what is taken, and what is left


def take(queue: Sequence[Transaction], every: int, closed: bool = True) -> Batch:
    """The first transactions, and with `closed` all that a global transaction ties to them.

    Nothing is taken while a part is missing that belongs to them.
    """
    if not closed or not any(transaction.parts for transaction in queue[:every]):
        return list(queue[:every]), list(queue[every:])
    chosen = _closure(queue, range(min(every, len(queue))))
    if chosen is None:
        return [], list(queue)
    taken = [t for n, t in enumerate(queue) if n in chosen]
    return taken, [t for n, t in enumerate(queue) if n not in chosen]


def _closure(queue: Sequence[Transaction], start: Sequence[int]) -> set[int] | None:
    """With each transaction those before it of its source, and the other parts of a global one."""
    before: dict[str, list[int]] = {}
    parts: dict[str, list[int]] = {}
    for number, transaction in enumerate(queue):
        before.setdefault(transaction.source, []).append(number)
        if transaction.parts:
            parts.setdefault(transaction.gid, []).append(number)
    chosen: set[int] = set()
    todo = list(start)
    while todo:
        number = todo.pop()
        if number in chosen:
            continue
        chosen.add(number)
        transaction = queue[number]
        todo += [n for n in before[transaction.source] if n < number]
        if transaction.parts:
            others = parts[transaction.gid]
            if len(others) < len(transaction.parts):
                return None
            todo += others
    return chosen


def positions(transactions: Sequence[Transaction]) -> dict[str, str]:
    """Behind the last of each source."""
    return {t.source: t.position for t in transactions}
