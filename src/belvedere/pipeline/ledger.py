"""The ledger: lease, intents and commits, each one transaction in the store's catalog (rule R4).

    lease    one coordinator at a time; a fencing number that grows with every owner
    begin    the intent of epoch e: only under the current fence, only if none is open, only after commit e-1
    commit   the manifest of epoch e: only under the current fence, only for the open intent

Views join, and become live, inside these transactions, so always between two epochs (rule R7).
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from belvedere.errors import LeaseLost, Stale
from belvedere.operators.graph import state_tables
from belvedere.pipeline.intent import CHANGES, LOAD, Intent, Load, Loading, engines
from belvedere.pipeline.manager import Ack, ack_to_json
from belvedere.pipeline.plan import EpochPlan
from belvedere.processes import start_time
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Position
from belvedere.views.catalog import CatalogState, bump, make_live, new_id, read_head, read_state
from belvedere.views.definitions import DROPPED, LIVE, LOADING, TableDefinition, ViewDefinition, ViewStatus
from belvedere.views.loading import admit, followed_tables
from belvedere.views.pins import oldest_pin_in

KEPT_MANIFESTS = 1000
LEASE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Rules:
    """Switches for tests: with one off, the simulator must find a wrong view."""

    one_intent: bool = True  # R4: an open intent is run, never replaced
    fence: bool = True  # R4: only the current owner writes intents and commits
    join_between: bool = True  # R7: views join between epochs, with what is committed then
    watermark: bool = True  # R7: a loading view sees changes up to its watermark only


@dataclass(frozen=True, slots=True)
class Lease:
    fence: int
    owner: str
    host: str
    pid: int
    started: int
    expires: float

    def alive(self, now: float) -> bool:
        if self.owner == "" or now > self.expires:
            return False
        return self.host != socket.gethostname() or start_time(self.pid) == self.started


def take_lease(store: Store, owner: str, now: Callable[[], float] = time.time) -> Lease | None:
    """The lease, or None while another coordinator is alive."""

    def body(t: CatalogTransaction) -> Lease | None:
        found = t.get("lease")
        old = Lease(**json.loads(found)) if found else Lease(0, "", "", 0, 0, 0.0)
        if old.owner != owner and old.alive(now()):
            return None
        pid = os.getpid()
        lease = Lease(old.fence + 1, owner, socket.gethostname(), pid, start_time(pid), now() + LEASE_SECONDS)
        t.put("lease", json.dumps(asdict(lease)).encode())
        return lease

    return store.catalog.transact(body)


def holder(store: Store, now: float) -> Lease | None:
    """The coordinator that is alive now."""
    found = store.catalog.read(lambda t: t.get("lease"))
    lease = Lease(**json.loads(found)) if found else None
    return lease if lease is not None and lease.alive(now) else None


def renew(store: Store, lease: Lease, now: float) -> None:
    def body(t: CatalogTransaction) -> None:
        check_fence(t, lease)
        t.put("lease", json.dumps(asdict(replace(lease, expires=now + LEASE_SECONDS))).encode())

    store.catalog.transact(body)


def release(store: Store, lease: Lease) -> None:
    def body(t: CatalogTransaction) -> None:
        if json.loads(t.get("lease") or b"{}").get("fence") == lease.fence:
            t.put("lease", json.dumps(asdict(replace(lease, owner="", expires=0.0))).encode())

    store.catalog.transact(body)


def check_fence(t: CatalogTransaction, lease: Lease) -> None:
    current = json.loads(t.get("lease") or b"{}").get("fence", 0)
    if current != lease.fence:
        raise LeaseLost(f"another coordinator took over (fence {current}, ours was {lease.fence})")


@dataclass(frozen=True, slots=True)
class Choice:
    """What the next epoch should do, decided from one reading of the catalog; the transaction checks it again."""

    kind: str
    high: dict[str, Position]
    load: Load | None = None
    repair: str | None = None


Decide = Callable[[CatalogState, list[ViewDefinition]], Choice | None]


def begin(store: Store, lease: Lease, decide: Decide, rules: Rules, now: float) -> Intent | None:
    """The open intent, or a new one as `decide` wishes, or None if there is nothing to do."""

    def body(t: CatalogTransaction) -> Intent | None:
        if rules.fence:
            check_fence(t, lease)
        found = t.get("intent")
        head = read_head(t)
        if found is not None and rules.one_intent:
            return _without_dropped(t, Intent.from_bytes(found))
        _admit(t)
        state = read_state(t)
        active = [v for v in state.definitions() if state.status[v.id].state in (LIVE, LOADING)]
        choice = decide(state, active)
        if choice is None:
            return None
        tables = followed_tables(state, active)
        if choice.kind == LOAD:
            tables |= {s for v in active for s in v.planned.sources}
        intent = Intent(
            epoch=head.epoch + 1,
            id=uuid.uuid4().hex,
            fence=lease.fence,
            kind=choice.kind,
            low=head.vector if rules.join_between or choice.kind != LOAD else store.base.end(),
            high=choice.high if choice.kind == CHANGES else head.vector,
            views=tuple(v.id for v in active),
            tables=tuple(sorted(tables)),
            slots=store.state.slots,
            started=now,
            loading=_loading(state, active, rules),
            load=choice.load,
            repair=choice.repair,
            engines=engines(),
        )
        t.put("intent", intent.to_bytes())
        return intent

    return store.catalog.transact(body)


def _without_dropped(t: CatalogTransaction, intent: Intent) -> Intent:
    """An open intent that is run again leaves out views that were dropped since: the way out if one of them makes it fail.

    What other views share with them is written all the same, by old attempts and new ones alike (rule R5).
    """
    status = {view: ViewStatus.from_bytes(t.get(f"status/{view}") or b"") for view in intent.views}
    kept = tuple(view for view in intent.views if status[view].state != DROPPED)
    if kept == intent.views:
        return intent
    loading = [status[view] for view in kept if status[view].state == LOADING]
    smaller = replace(intent, views=kept, loading=tuple(g for g in intent.loading if any(s.group == g.group for s in loading)))
    load = intent.load
    if load is not None and not any(s.group == load.group and load.origin in s.origins for s in loading):
        smaller = replace(smaller, kind=CHANGES, load=None)  # nobody is left to load for: an epoch without operations
    t.put("intent", smaller.to_bytes())
    return smaller


def _admit(t: CatalogTransaction) -> None:
    """Requested views join; those for which everything is kept already are live at once."""
    joined = admit(t, lambda: new_id(t))
    make_live(t, [view for view, complete in joined.items() if complete], read_head(t).epoch)
    if joined:
        bump(t)


def _loading(state: CatalogState, active: list[ViewDefinition], rules: Rules) -> tuple[Loading, ...]:
    groups: dict[int, Loading] = {}
    for status in (state.status[v.id] for v in active):
        if status.state == LOADING:
            marks = status.marks if rules.watermark else dict.fromkeys(status.origins)
            groups[status.group] = Loading(status.group, status.building, marks)
    return tuple(groups[g] for g in sorted(groups))


def open_intent(store: Store) -> Intent:
    """The intent of the epoch that is open now."""
    found = store.catalog.read(lambda t: t.get("intent"))
    if found is None:
        raise Stale("no epoch is open: this attempt is too late")
    return Intent.from_bytes(found)


def load_plan(store: Store, intent: Intent) -> EpochPlan:
    """The definitions that an intent names; Stale if they are gone, because then so is the epoch."""

    def body(t: CatalogTransaction) -> tuple[list[bytes | None], list[bytes | None]]:
        return [t.get(f"view/{view}") for view in intent.views], [t.get(f"table/{i}") for i in intent.tables]

    views, tables = store.catalog.read(body)
    if None in views or None in tables:
        raise Stale(f"epoch {intent.epoch} names definitions that are gone")
    return EpochPlan.of(intent, [ViewDefinition.from_bytes(v) for v in views if v], [TableDefinition.from_bytes(v) for v in tables if v])


def commit(store: Store, lease: Lease, intent: Intent, acks: Iterable[Ack], rules: Rules, now: float) -> dict[str, Any]:
    """Write the commit manifest, move the head, let loaded views become live; returns the manifest."""
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

    store.catalog.transact(body)
    return manifest


def _advance(t: CatalogTransaction, intent: Intent, acks: list[Ack]) -> None:
    """Errors of nodes, and the progress of loading."""
    for ack in acks:
        for table, slots in ack.errors.items():
            known = json.loads(t.get(f"errors/{table}") or b"{}")
            t.put(f"errors/{table}", json.dumps({**known, **{str(slot): n for slot, n in slots.items()}}).encode())
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
        "low": intent.low,
        "high": intent.high,
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


def remove_dropped(store: Store, lease: Lease, now: float) -> list[int]:
    """Forget definitions of dropped views that no open epoch names; returns the state tables that can be dropped next.

    Tables stay while a pin is as old as their view's end: a long reader may have taken that view into its cut (rule R6).
    """

    def body(t: CatalogTransaction) -> list[int]:
        check_fence(t, lease)
        if t.get("intent") is not None:
            return []
        gone = [int(key.split("/")[1]) for key, value in t.scan("status/") if ViewStatus.from_bytes(value).state == DROPPED]
        _forget(t, gone)
        for key, _ in t.scan("dropped/"):
            definition = TableDefinition.from_bytes(t.get(f"table/{key.split('/')[1]}") or b"")
            if definition.delta:
                t.put(f"garbage/{definition.delta}", b"%d" % read_head(t).epoch)
            t.delete(f"table/{definition.id}")
            t.delete(key)
        pin = oldest_pin_in(t, now)
        return [int(key.split("/")[1]) for key, end in t.scan("garbage/") if pin is None or int(end) < pin.epoch]

    return store.catalog.transact(body)


def _forget(t: CatalogTransaction, gone: list[int]) -> None:
    """Remove views; what no other view uses becomes garbage."""
    if not gone:
        return
    views = {int(key.split("/")[1]): ViewDefinition.from_bytes(value) for key, value in t.scan("view/")}
    kept = {n.id for view, definition in views.items() if view not in gone for n in definition.nodes}
    for node in {n.id: n for view in gone for n in views[view].nodes if n.id not in kept}.values():
        for table in state_tables(node):
            t.put(f"garbage/{table}", b"%d" % read_head(t).epoch)
            t.delete(f"errors/{table}")
    for view in gone:
        t.delete(f"status/{view}")
        t.delete(f"view/{view}")


def garbage_removed(store: Store, tables: Iterable[int]) -> None:
    def body(t: CatalogTransaction) -> None:
        for table in tables:
            t.delete(f"garbage/{table}")

    store.catalog.transact(body)


def manifests(t: CatalogTransaction, last: int) -> list[dict[str, Any]]:
    """The manifests of the last committed epochs, oldest first."""
    return [json.loads(value) for _, value in t.scan("commit/")[-last:]]
