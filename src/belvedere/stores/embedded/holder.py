"""Who holds an environment's write lock, so that a stopped holder can be ended (rule R10).

LMDB recovers the lock of a dead process, but a stopped one keeps all writers waiting without a time
limit. So beside each environment stands a small file; each process has an entry of its own in it,
so entries need no lock:

    pid u64, start time of the process (ticks after boot) u64, when the write transaction began f64
    (0: holds none), zero u64

Times are those of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import time
from pathlib import Path
from struct import Struct

from belvedere.processes import start_time

_ENTRY = Struct("<QQdQ")
_BEGAN = Struct("<d")
_ENTRIES = 1024
_NAME = "holder"


class Holder:
    """This process's entry.

    With more processes than entries the surplus ones are simply not watched.
    """

    def __init__(self, folder: str, name: str = _NAME) -> None:
        fd = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_size < _ENTRIES * _ENTRY.size:
                os.ftruncate(fd, _ENTRIES * _ENTRY.size)
            self._map = mmap.mmap(fd, _ENTRIES * _ENTRY.size)
            at = self._claim()
        finally:
            # closing would not do it: the map keeps a copy of the descriptor
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)
        self._at = None if at is None else at + 16

    def _claim(self) -> int | None:
        me = os.getpid()
        for at in range(0, len(self._map), _ENTRY.size):
            pid, started, _, _ = _ENTRY.unpack_from(self._map, at)
            if pid in (0, me) or start_time(pid) != started:
                _ENTRY.pack_into(self._map, at, me, start_time(me), 0.0, 0)
                return at
        return None

    def began(self) -> None:
        if self._at is not None:
            _BEGAN.pack_into(self._map, self._at, time.monotonic())

    def ended(self) -> None:
        if self._at is not None:
            _BEGAN.pack_into(self._map, self._at, 0.0)

    def close(self) -> None:
        if self._at is not None:
            _ENTRY.pack_into(self._map, self._at - 16, 0, 0, 0.0, 0)
        self._map.close()


def end_stuck(folder: str | Path, deadline_seconds: float, name: str = _NAME) -> list[int]:
    """Kill the processes, other than this one, that have held the write lock longer than allowed;
    return their ids.
    """
    try:
        with open(os.path.join(folder, name), "rb") as file:
            entries = file.read()
    except FileNotFoundError:  # nobody has opened this environment yet
        return []
    ended = []
    now = time.monotonic()
    for pid, started, began, _ in _ENTRY.iter_unpack(
        entries[: len(entries) // _ENTRY.size * _ENTRY.size]
    ):
        if (
            began
            and now - began > deadline_seconds
            and pid != os.getpid()
            and start_time(pid) == started
        ):
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                # it ended by itself, or belongs to somebody else
                continue
            ended.append(pid)
    return ended
