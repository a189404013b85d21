"""Processes of this machine, as Linux tells of them."""

from __future__ import annotations

_ENDED = (b"Z", b"X")  # zombie, dead


def start_time(pid: int) -> int:
    """When a process started, in clock ticks after boot; 0 if there is no such process, or if it
    has ended and only its parent has not asked yet how.

    Tells reused pids apart.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:  # no such process (any more)
        return 0
    # the name in parentheses is field 2, the state field 3, the start time field 22
    fields = text[text.rindex(b")") :].split()
    return 0 if fields[1] in _ENDED else int(fields[20])
