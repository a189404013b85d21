"""Batches: which of the transactions that were received are taken together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import not_

from belvedere.warehouse.machine import Transaction

Batch = tuple[list[Transaction], list[Transaction]]  # what is taken, and what is left


WHEN_DUE = 0  # transactions of a batch: all that have come, when somebody says that it is time


def take(queue: Sequence[Transaction], every: int, closed: bool = True) -> Batch:
    """The first transactions, and with `closed` all that a global transaction ties to them.

    Nothing is taken while a part is missing that belongs to them. Of WHEN_DUE all are taken for
    which none is missing.
    """
    if every == WHEN_DUE:
        ends = _ends(queue) if closed else {}
        is_in = [n < ends.get(t.source, len(queue)) for n, t in enumerate(queue)]
        return list(compress(queue, is_in)), list(compress(queue, map(not_, is_in)))
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


def _ends(queue: Sequence[Transaction]) -> dict[str, int]:
    """Per source, the first transaction that a missing part keeps from being taken."""
    parts: dict[str, list[int]] = {}
    for number, transaction in enumerate(queue):
        if transaction.parts:
            parts.setdefault(transaction.gid, []).append(number)
    ends: dict[str, int] = {}

    def is_kept(number: int) -> bool:
        return number >= ends.get(queue[number].source, len(queue))

    def waits(transaction: Transaction) -> bool:
        others = parts[transaction.gid] if transaction.parts else []
        return len(others) < len(transaction.parts) or any(map(is_kept, others))

    before: dict[str, int] | None = None
    while ends != before:
        before = dict(ends)
        for number, transaction in enumerate(queue):
            if not is_kept(number) and waits(transaction):
                ends[transaction.source] = number
    return ends


def positions(transactions: Sequence[Transaction]) -> dict[str, str]:
    """Behind the last of each source."""
    return {t.source: t.position for t in transactions}
