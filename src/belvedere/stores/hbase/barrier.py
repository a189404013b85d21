"""A barrier: wait until everything that was acknowledged before is in the log.

A marker row is put on every live region server. Its log is shipped first in, first out, so the
marker arrives behind all that the server had acknowledged. A server that ends meanwhile is waited
for otherwise: until another one has delivered all of its queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from belvedere.errors import StoreError, Timeout
from belvedere.stores.hbase.capture import Marks
from belvedere.stores.hbase.log_index import State

_NEVER = threading.Event()
_LOOK_SECONDS = 0.02  # between two looks at what has arrived
_CHECK_SECONDS = 3.0  # between two looks whether anything can arrive


@dataclass
class Barrier:
    """`discover` looks for what has arrived, `check` raises if nothing can."""

    marks: Marks
    discover: Callable[[], State]
    check: Callable[[], None]
    deadline: float
    _next_check: float = field(default_factory=lambda: time.monotonic() + _CHECK_SECONDS)
    _waiting: dict[str, tuple[bytes, int]] = field(default_factory=dict)

    def pass_through(self) -> None:
        """Return when a discovery that begins now finds everything."""
        servers = self.marks.live_servers()
        self._put(servers)
        left = set(servers)
        while True:
            state = self.discover()
            left = {server for server in left if not self._has_arrived(state, server)}
            _refuse_several_logs(state, left)
            gone = left - self.marks.live_servers()
            astray = {server for server in left - gone if self._went_astray(state, server)}
            if astray:
                self._put(astray)
            elif left == gone and not self.marks.dead_queues():
                return
            self._pause(left)

    def _put(self, servers: set[str]) -> None:
        """A marker on each; a server that ends while it gets one is found by its queue."""
        for server, row in self.marks.place(sorted(servers)).items():
            self._waiting[server] = row, self.marks.put(row)

    def _has_arrived(self, state: State, server: str) -> bool:
        if server not in self._waiting:
            return False
        row, number = self._waiting[server]
        return state.marks.get((server, row), 0) >= number

    def _went_astray(self, state: State, server: str) -> bool:
        """Whether a marker came by another server's log: its region had moved there."""
        if server not in self._waiting:
            return True
        row, number = self._waiting[server]
        arrived = [n for (queue, marked), n in state.marks.items() if marked == row]
        return max(arrived, default=0) >= number

    def _pause(self, left: set[str]) -> None:
        now = time.monotonic()
        if now > min(self.deadline, self._next_check):
            self.check()
            self._next_check = now + _CHECK_SECONDS
        if now > self.deadline:
            behind = ", ".join(sorted(left)) or "servers that have ended"
            raise Timeout(
                f"the changes of {behind} did not arrive in time: look at the region servers' logs"
                " for replication errors, or wait longer"
            )
        _NEVER.wait(_LOOK_SECONDS)  # nothing tells us what a foreign server has done


def _refuse_several_logs(state: State, servers: set[str]) -> None:
    for queue, _ in state.marks:
        server = queue.rsplit(".", 1)[0]
        if server != queue and server in servers:
            raise StoreError(
                f"{server} writes several logs at once, so no marker can follow its changes: set"
                " hbase.wal.provider to filesystem or asyncfs, not to multiwal"
            )
