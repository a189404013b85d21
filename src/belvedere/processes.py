"""Processes of this machine, as Linux tells of them."""

from __future__ import annotations


def start_time(pid: int) -> int:
    """When a process started, in clock ticks after boot; 0 if there is no such process.

    Tells reused pids apart.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:  # no such process (any more)
        return 0
    # the name in parentheses is field 2, the start time field 22
    return int(text[text.rindex(b")") :].split()[20])
