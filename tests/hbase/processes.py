"""Processes below a process, as Linux tells of them."""

from __future__ import annotations

from pathlib import Path


def child_ids(pid: int) -> list[int]:
    """Of all its threads: a process belongs to the thread that started it."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(each) for each in _text(children).split()]
    return sorted(found)


def descendants(pid: int) -> list[int]:
    children = child_ids(pid)
    return children + [below for child in children for below in descendants(child)]


def command_of(pid: int) -> str:
    """Its command line; empty if it has ended."""
    return _text(Path(f"/proc/{pid}/cmdline")).replace("\0", " ")


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # the process has ended
        return ""
