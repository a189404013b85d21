"""Commits: the manifest of an epoch, only under the current fence, only for the open intent (rule
R4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from belvedere.catalog import layout
from belvedere.catalog.definitions import LOADING
from belvedere.catalog.history import forget_commits, held_by_history, note_commit
from belvedere.catalog.pins import oldest_pin_in
from belvedere.catalog.state import bump, read_floor, read_head
from belvedere.catalog.views import make_live
from belvedere.epochs.intent import Intent, Load
from belvedere.epochs.lease import Lease, check_fence
from belvedere.epochs.manager import Ack, ack_to_json
from belvedere.epochs.rules import Rules
from belvedere.errors import LeaseLost
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Epoch

KEPT_MANIFESTS = 1000
_STEP = 4  # of the epochs that are kept, up to a fourth more: removing them costs as much as all


def commit(
    store: Store,
    lease: Lease,
    intent: Intent,
    acks: Iterable[Ack],
    rules: Rules,
    now: float,
    history: int,
    short: bool = False,
) -> dict[str, Any]:
    """Write the commit manifest, move the head, let loaded views become
    live; returns the manifest. If room is short, kept history is given up.
    """
    done = list(acks)
    manifest = _manifest(intent, done, now)

    def body(t: CatalogTransaction) -> None:
        if rules.fence:
            check_fence(t, lease)
        head = read_head(t)
        if rules.one_intent and not _is_open(t, intent):
            raise LeaseLost(f"epoch {intent.epoch} is no longer open")
        layout.HEAD.put(t, replace(head, epoch=intent.epoch, vector=intent.high))
        layout.COMMITS.put(t, intent.epoch, manifest)
        if intent.epoch > KEPT_MANIFESTS:
            layout.COMMITS.delete(t, intent.epoch - KEPT_MANIFESTS)
        layout.INTENT.delete(t)
        if intent.repair is not None:
            layout.REPAIRS.delete(t, intent.repair)
        _advance(t, intent, done)
        note_commit(t, intent.epoch, intent.high, now)
        if rules.floor_first:
            _raise_floor(t, intent.epoch, history, now, short)

    store.catalog.transact(body)
    return manifest


def _is_open(t: CatalogTransaction, intent: Intent) -> bool:
    found = layout.INTENT.get(t)
    return found is not None and Intent.from_bytes(found).id == intent.id


def raise_floor(store: Store, lease: Lease, now: float) -> None:
    """Allow all history to be removed that no reader holds."""

    def body(t: CatalogTransaction) -> None:
        check_fence(t, lease)
        _raise_floor(t, read_head(t).epoch, 0, now)

    store.catalog.transact(body)


def _raise_floor(
    t: CatalogTransaction, epoch: Epoch, history: int, now: float, short: bool = False
) -> None:
    """Allow history to be removed, all but so many epochs and what is kept for readers of the past,
    as far as no reader holds it.

    In steps of as many epochs, because to remove it is a transaction in every slot, which looks at
    all that stay. Pins are written in transactions of the same catalog, so none can be overlooked.
    """
    pin, floor = oldest_pin_in(t, now), read_floor(t)
    allowed = epoch - history if pin is None else min(epoch - history, pin.epoch)
    if not short:
        allowed = min(allowed, held_by_history(t, epoch, now))
    if allowed >= floor + max(history, (epoch - allowed) // _STEP, 1):
        layout.FLOORS.put(t, allowed)
        forget_commits(t, floor, allowed)


def _advance(t: CatalogTransaction, intent: Intent, acks: list[Ack]) -> None:
    """Errors of nodes, and the progress of loading."""
    for ack in acks:
        for table, slots in ack.errors.items():
            known = layout.ERRORS.get(t, table) or {}
            now_wrong = {str(slot): count for slot, count in slots.items()}
            layout.ERRORS.put(t, table, {**known, **now_wrong})
    if intent.load is not None:
        _loaded(t, intent.load, sum(a.changes for a in acks), intent)
    if intent.load is not None or any(a.errors for a in acks):
        bump(t)


def _loaded(t: CatalogTransaction, load: Load, rows: int, intent: Intent) -> None:
    complete = []
    for view, status in layout.STATUS.all(t).items():
        if status.state == LOADING and status.group == load.group:
            marks = {**status.marks, load.origin: load.high}
            layout.STATUS.put(t, view, replace(status, marks=marks, loaded=status.loaded + rows))
            if all(marks.get(origin, "") is None for origin in status.origins):
                complete.append(view)
    make_live(t, complete, intent.epoch)


def _manifest(intent: Intent, acks: list[Ack], now: float) -> dict[str, Any]:
    times: dict[str, float] = {}
    for ack in acks:
        for stage, seconds in ack.seconds.items():
            times[stage] = times.get(stage, 0.0) + seconds
    written: dict[str, int] = {}
    for ack in acks:
        for table, count in ack.written.items():
            written[str(table)] = written.get(str(table), 0) + count
    return {
        "epoch": intent.epoch,
        "kind": intent.kind,
        "low": intent.low.to_json(),
        "high": intent.high.to_json(),
        "operations": intent.operations,
        "changes": sum(a.changes for a in acks),
        "started": intent.started,
        "committed": now,
        "last_time": max((a.last_time for a in acks), default=0.0),
        "managers": len(acks),
        "seconds": times,
        "written": written,
        "views": list(intent.views),
        "acks": [ack_to_json(a) for a in acks] if len(acks) <= 16 else [],
    }


def manifests(t: CatalogTransaction, last: int) -> list[dict[str, Any]]:
    """The manifests of the last committed epochs, oldest first."""
    return layout.COMMITS.last(t, last)
