"""The lease: one coordinator at a time; a fencing number that grows with every owner (rule R4)."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

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


def take_lease(store: Store, owner: str, now: Callable[[], float] = time.time) -> Lease | None:
    """The lease, or None while another coordinator is alive."""

    def body(t: CatalogTransaction) -> Lease | None:
        found = t.get("lease")
        old = Lease(**json.loads(found)) if found else Lease(0, "", "", 0, 0, 0.0)
        if old.owner != owner and old.alive(now()):
            return None
        pid = os.getpid()
        lease = Lease(
            old.fence + 1, owner, socket.gethostname(), pid, start_time(pid), now() + LEASE_SECONDS
        )
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
