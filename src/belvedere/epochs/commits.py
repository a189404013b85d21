"""Commits: the manifest of an epoch, only under the current fence, only for the open intent (rule
R4).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from belvedere.catalog.definitions import LOADING, ViewStatus
from belvedere.catalog.pins import oldest_pin_in
from belvedere.catalog.state import bump, read_floor, read_head
from belvedere.catalog.views import make_live
from belvedere.epochs.intent import Intent, Load
from belvedere.epochs.lease import Lease, check_fence
from belvedere.epochs.manager import Ack, ack_to_json
from belvedere.epochs.rules import Rules
from belvedere.errors import LeaseLost
from belvedere.stores.base import FLOOR, CatalogTransaction, Store
from belvedere.types import Epoch

KEPT_MANIFESTS = 1000


def commit(
    store: Store,
    lease: Lease,
    intent: Intent,
    acks: Iterable[Ack],
    rules: Rules,
    now: float,
    history: int,
) -> dict[str, Any]:
    """Write the commit manifest, move the head, let loaded views become
    live; returns the manifest.
    """
    done = list(acks)
    manifest = _manifest(intent, done, now)

    def body(t: CatalogTransaction) -> None:
        if rules.fence:
            check_fence(t, lease)
        head = read_head(t)
        open_intent = t.get("intent")
        is_open = open_intent is not None and Intent.from_bytes(open_intent).id == intent.id
        if rules.one_intent and not is_open:
            raise LeaseLost(f"epoch {intent.epoch} is no longer open")
        t.put("head", replace(head, epoch=intent.epoch, vector=intent.high).to_bytes())
        t.put(f"commit/{intent.epoch:020d}", json.dumps(manifest).encode())
        t.delete(f"commit/{intent.epoch - KEPT_MANIFESTS:020d}")
        t.delete("intent")
        if intent.repair is not None:
            t.delete(intent.repair)
        _advance(t, intent, done)
        if rules.floor_first:
            _raise_floor(t, intent.epoch - history, now)

    store.catalog.transact(body)
    return manifest


def _raise_floor(t: CatalogTransaction, keep: Epoch, now: float) -> None:
    """Allow history below an epoch to be removed, as far as no reader holds it.

    Pins are written in transactions of the same catalog, so none can be overlooked.
    """
    pin = oldest_pin_in(t, now)
    allowed = keep if pin is None else min(keep, pin.epoch)
    if allowed > read_floor(t):
        t.put(FLOOR, b"%d" % allowed)


def _advance(t: CatalogTransaction, intent: Intent, acks: list[Ack]) -> None:
    """Errors of nodes, and the progress of loading."""
    for ack in acks:
        for table, slots in ack.errors.items():
            known = json.loads(t.get(f"errors/{table}") or b"{}")
            t.put(
                f"errors/{table}",
                json.dumps({**known, **{str(slot): n for slot, n in slots.items()}}).encode(),
            )
    if intent.load is not None:
        _loaded(t, intent.load, sum(a.changes for a in acks), intent)
    if intent.load is not None or any(a.errors for a in acks):
        bump(t)


def _loaded(t: CatalogTransaction, load: Load, rows: int, intent: Intent) -> None:
    complete = []
    for key, value in t.scan("status/"):
        status = ViewStatus.from_bytes(value)
        if status.state == LOADING and status.group == load.group:
            marks = {**status.marks, load.origin: load.high}
            t.put(key, replace(status, marks=marks, loaded=status.loaded + rows).to_bytes())
            if all(marks.get(origin, "") is None for origin in status.origins):
                complete.append(int(key.split("/")[1]))
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
    return [json.loads(value) for _, value in t.scan("commit/")[-last:]]
