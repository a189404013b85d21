"""The ledger: lease, intents and commits, each one transaction in the store's catalog (rule R4).

    lease    one coordinator at a time; a fencing number that grows with every owner
    begin    the intent of epoch e: only under the current fence, only if none is open, only after
             commit e-1
    commit   the manifest of epoch e: only under the current fence, only for the open intent

Views join, and become live, inside these transactions, so always between two epochs (rule R7).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from belvedere.catalog import layout
from belvedere.catalog.definitions import (
    DROPPED,
    LIVE,
    LOADING,
    TableDefinition,
    ViewDefinition,
)
from belvedere.catalog.head import Head
from belvedere.catalog.loading import admit, followed_tables, has_requests
from belvedere.catalog.state import CatalogState, bump, new_id, read_head, read_state
from belvedere.catalog.views import make_live
from belvedere.epochs.intent import CHANGES, LOAD, Intent, Load, Loading, engines
from belvedere.epochs.lease import Lease, check_fence
from belvedere.epochs.plan import EpochPlan
from belvedere.epochs.rules import Rules
from belvedere.errors import Stale
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Vector


@dataclass(frozen=True, slots=True)
class Choice:
    """What the next epoch should do, decided from one reading of the catalog."""

    kind: str
    high: Vector
    load: Load | None = None
    repair: str | None = None


Decide = Callable[[CatalogState, list[ViewDefinition]], Choice | None]


def begin(store: Store, lease: Lease, decide: Decide, rules: Rules, now: float) -> Intent | None:
    """The open intent, or a new one as `decide` wishes, or None if there is nothing to do.

    Deciding reads the log and base tables, so it stands outside the transaction: that one writes
    the intent only if the catalog is still the one that was decided upon.
    """
    _admit(store, lease, rules)
    while True:
        state, found = store.catalog.read(lambda t: (read_state(t), layout.INTENT.get(t)))
        if found is not None and rules.one_intent:
            recovered = store.catalog.transact(lambda t: _recover(t, lease, rules))
            if recovered is not None:
                return recovered
            continue
        active = [v for v in state.definitions() if state.status[v.id].state in (LIVE, LOADING)]
        try:
            choice = decide(state, active)
        except Stale:
            if store.catalog.read(read_head) == state.head:
                raise
            continue  # another coordinator has gone on, and removed what was looked at
        if choice is None:
            return None
        intent = _intent(store, lease, state, active, choice, rules, now)
        if store.catalog.transact(
            partial(_open, lease=lease, head=state.head, intent=intent, rules=rules)
        ):
            return intent


def _intent(
    store: Store,
    lease: Lease,
    state: CatalogState,
    active: list[ViewDefinition],
    choice: Choice,
    rules: Rules,
    now: float,
) -> Intent:
    head = state.head
    tables = followed_tables(state, active)
    if choice.kind == LOAD:
        tables |= {s for v in active for s in v.planned.sources}
    return Intent(
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


def _open(t: CatalogTransaction, lease: Lease, head: Head, intent: Intent, rules: Rules) -> bool:
    """Write the intent, if it was decided upon this head, and no other is open."""
    if rules.fence:
        check_fence(t, lease)
    if read_head(t) != head or (rules.one_intent and layout.INTENT.get(t) is not None):
        return False
    layout.INTENT.put(t, intent.to_bytes())
    return True


def _recover(t: CatalogTransaction, lease: Lease, rules: Rules) -> Intent | None:
    """The open intent, to be run again; None if it has been committed meanwhile."""
    if rules.fence:
        check_fence(t, lease)
    found = layout.INTENT.get(t)
    return None if found is None else _without_dropped(t, Intent.from_bytes(found))


def _without_dropped(t: CatalogTransaction, intent: Intent) -> Intent:
    """An open intent that is run again leaves out views that were dropped since: the way out if one
    of them makes it fail.

    What other views share with them is written all the same, by old attempts and new ones alike
    (rule R5).
    """
    status = {view: layout.STATUS.need(t, view) for view in intent.views}
    kept = tuple(view for view in intent.views if status[view].state != DROPPED)
    if kept == intent.views:
        return intent
    loading = [status[view] for view in kept if status[view].state == LOADING]
    smaller = replace(
        intent,
        views=kept,
        loading=tuple(g for g in intent.loading if any(s.group == g.group for s in loading)),
    )
    load = intent.load
    if load is not None and not any(
        s.group == load.group and load.origin in s.origins for s in loading
    ):
        # nobody is left to load for: an epoch without operations
        smaller = replace(smaller, kind=CHANGES, load=None)
    layout.INTENT.put(t, smaller.to_bytes())
    return smaller


def _admit(store: Store, lease: Lease, rules: Rules) -> None:
    """Requested views join; those for which everything is kept already are live at once."""

    def body(t: CatalogTransaction) -> None:
        if rules.fence:
            check_fence(t, lease)
        if rules.one_intent and layout.INTENT.get(t) is not None:
            return
        joined = admit(t, lambda: new_id(t))
        make_live(t, [view for view, complete in joined.items() if complete], read_head(t).epoch)
        if joined:
            bump(t)

    if store.catalog.read(has_requests):
        store.catalog.transact(body)


def _loading(
    state: CatalogState, active: list[ViewDefinition], rules: Rules
) -> tuple[Loading, ...]:
    groups: dict[int, Loading] = {}
    for status in (state.status[v.id] for v in active):
        if status.state == LOADING:
            marks = status.marks if rules.watermark else dict.fromkeys(status.origins)
            groups[status.group] = Loading(status.group, status.building, marks)
    return tuple(groups[g] for g in sorted(groups))


def open_intent(store: Store) -> Intent:
    """The intent of the epoch that is open now."""
    found = layout.INTENT.current(store.catalog)
    if found is None:
        raise Stale("no epoch is open: this attempt is too late")
    return Intent.from_bytes(found)


def load_plan(store: Store, intent: Intent) -> EpochPlan:
    """The plan of an intent; Stale if its definitions are gone, because then so is the epoch."""
    return EpochPlan.of(intent, *definitions(store, intent))


def definitions(store: Store, intent: Intent) -> tuple[list[ViewDefinition], list[TableDefinition]]:
    """The views and tables that an intent names."""

    def body(
        t: CatalogTransaction,
    ) -> tuple[list[ViewDefinition | None], list[TableDefinition | None]]:
        views = [layout.VIEWS.get(t, view) for view in intent.views]
        return views, [layout.TABLES.get(t, table) for table in intent.tables]

    views, tables = store.catalog.read(body)
    if None in views or None in tables:
        raise Stale(f"epoch {intent.epoch} names definitions that are gone")
    return [v for v in views if v is not None], [t for t in tables if t is not None]
