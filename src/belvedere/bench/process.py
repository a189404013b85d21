"""Fresh processes for measurements, and the memory of a process tree as Linux reports it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

_SOURCES = str(Path(__file__).resolve().parents[2])


def environment() -> dict[str, str]:
    """The environment of a child that imports the same belvedere as we do, installed or not."""
    known = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (_SOURCES, known)))}


def command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def run_json(module: str, *arguments: str) -> dict[str, Any]:
    """Runs a module to its end and returns the JSON object of its last output line; its errors go
    to ours.
    """
    done = subprocess.run(
        command(module, *arguments),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(
            f"{module} {' '.join(arguments)} ended with {done.returncode} and no result: see its"
            " messages above"
        )
    result: dict[str, Any] = json.loads(lines[-1])
    return result


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident sizes in MiB. Mapped database files count as resident, once per process, but not as
    anonymous.
    """

    resident: int
    anonymous: int


def tree(root: int) -> list[int]:
    """The process and its living descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.listdir("/proc"):
        parent = _parent(entry) if entry.isdigit() else None
        if parent is not None:
            children[parent].append(int(entry))
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children[found[-1]]
    return found


def memory(root: int | None = None) -> Memory:
    """The tree's resident memory now."""
    return _summed(root, "VmRSS:", "RssAnon:")


def peak_rss_mb(root: int | None = None) -> int:
    """The sum of each living process's own peak: an upper bound of the tree's peak."""
    return _summed(root, "VmHWM:", "RssAnon:").resident


class Sampler:
    """Watches a process tree while the `with` block runs; `peak` is the largest sample."""

    def __init__(self, root: int, every: float = 0.1) -> None:
        self.peak = Memory(0, 0)
        self._root, self._every = root, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            now = memory(self._root)
            self.peak = Memory(
                max(self.peak.resident, now.resident), max(self.peak.anonymous, now.anonymous)
            )


def _parent(pid: str) -> int | None:
    try:
        stat = Path("/proc", pid, "stat").read_text()
    except OSError:  # it ended while we looked
        return None
    return int(stat.rpartition(")")[2].split()[1])


def _summed(root: int | None, resident: str, anonymous: str) -> Memory:
    totals = {resident: 0, anonymous: 0}
    for pid in tree(root or os.getpid()):
        for name, size in _status(pid):
            if name in totals:
                totals[name] += size
    return Memory(totals[resident] // 1024, totals[anonymous] // 1024)


def _status(pid: int) -> list[tuple[str, int]]:
    try:
        lines = Path("/proc", str(pid), "status").read_text().splitlines()
    except OSError:
        return []
    return [
        (parts[0], int(parts[1]))
        for parts in map(str.split, lines)
        if len(parts) == 3 and parts[2] == "kB"
    ]
