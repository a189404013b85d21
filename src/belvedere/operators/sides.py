"""The two ports of an operator that compares or joins."""

from __future__ import annotations

from typing import Literal

Side = Literal[0, 1]
LEFT: Side = 0
RIGHT: Side = 1


def other(side: Side) -> Side:
    return RIGHT if side == LEFT else LEFT
