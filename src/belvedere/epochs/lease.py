"""The lease: one coordinator at a time; a fencing number that grows with every owner (rule R4)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from belvedere.catalog import layout
from belvedere.catalog.damage import decodes
from belvedere.errors import LeaseLost
from belvedere.processes import start_time
from belvedere.stores.base import CatalogTransaction, Store

LEASE_SECONDS = 30.0


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

    def __str__(self) -> str:
        return f"{self.host} pid {self.pid}"


@decodes("the lease")
def read_lease(t: CatalogTransaction) -> Lease | None:
    stored = layout.LEASE.get(t)
    return None if stored is None else Lease(**stored)


def _fence(t: CatalogTransaction) -> int:
    lease = read_lease(t)
    return 0 if lease is None else lease.fence


def take_lease(store: Store, owner: str, now: Callable[[], float] = time.time) -> Lease | None:
    """The lease, or None while another coordinator is alive."""

    def body(t: CatalogTransaction) -> Lease | None:
        old = read_lease(t) or Lease(0, "", "", 0, 0, 0.0)
        if old.owner != owner and old.alive(now()):
            return None
        pid = os.getpid()
        lease = Lease(
            old.fence + 1, owner, socket.gethostname(), pid, start_time(pid), now() + LEASE_SECONDS
        )
        layout.LEASE.put(t, asdict(lease))
        return lease

    return store.catalog.transact(body)


def holder(store: Store, now: float) -> Lease | None:
    """The coordinator that is alive now."""
    lease = store.catalog.read(read_lease)
    return lease if lease is not None and lease.alive(now) else None


def renew(store: Store, lease: Lease, now: float) -> None:
    def body(t: CatalogTransaction) -> None:
        check_fence(t, lease)
        layout.LEASE.put(t, asdict(replace(lease, expires=now + LEASE_SECONDS)))

    store.catalog.transact(body)


def release(store: Store, lease: Lease) -> None:
    def body(t: CatalogTransaction) -> None:
        if _fence(t) == lease.fence:
            layout.LEASE.put(t, asdict(replace(lease, owner="", expires=0.0)))

    store.catalog.transact(body)


def clear(store: Store) -> None:
    """Nobody has the lease: the store is a copy, and its coordinator is not here."""

    def body(t: CatalogTransaction) -> None:
        lease = read_lease(t)
        if lease is not None:
            layout.LEASE.put(t, asdict(replace(lease, owner="", expires=0.0)))

    store.catalog.transact(body)


def check_fence(t: CatalogTransaction, lease: Lease) -> None:
    current = _fence(t)
    if current != lease.fence:
        raise LeaseLost(f"another coordinator took over (fence {current}, ours was {lease.fence})")
