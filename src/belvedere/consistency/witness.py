"""Witnesses: a history made small while it stays wrong in the same way, printed for a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from belvedere.consistency.history import History, Operation, State
from belvedere.consistency.levels import Verdict

_TRIES = 300  # histories that are judged on the way
_LARGE = 2_000  # operations and states; of more only what is near is shown, as it is
T = TypeVar("T")
Judge = Callable[[History], Verdict | None]


def shrink(history: History, verdict: Verdict, judge: Judge) -> Verdict:
    """Leave out states and transactions while the same level is missed."""
    subject = (verdict.view, verdict.record, verdict.by)
    states = [s for s in history.states if (s.view, s.record, s.by) == subject]
    steps = [step for line in history.transactions().values() for step in line]
    best = verdict
    if len(states) + len(steps) <= _LARGE:
        tries = _Tries(history, judge, verdict)
        states = tries.smaller(states, lambda some: (some, steps))
        steps = tries.smaller(steps, lambda some: (states, some))
        states = tries.smaller(states, lambda some: (some, steps))
        best = tries.best
    return replace(verdict, why=best.why, witness=_text(best, states, steps))


class _Tries:
    def __init__(self, history: History, judge: Judge, verdict: Verdict) -> None:
        self.history, self.judge, self.best, self.left = history, judge, verdict, _TRIES

    def smaller(
        self, parts: list[T], whole: Callable[[list[T]], tuple[list[State], list[list[Operation]]]]
    ) -> list[T]:
        """Without as many parts as possible: in halves, quarters, at last one by one."""
        size = max(1, len(parts) // 2)
        while self.left:
            at = 0
            while at < len(parts) and self.left:
                some = parts[:at] + parts[at + size :]
                if self._is_wrong(*whole(some)):
                    parts = some
                else:
                    at += size
            if size == 1:
                break
            size = max(1, size // 2)
        return parts

    def _is_wrong(self, states: list[State], steps: list[list[Operation]]) -> bool:
        if not states:
            return False
        self.left -= 1
        operations = [o for step in steps for o in step]
        found = self.judge(self.history.with_parts(operations, states))
        if found is None:
            return False
        self.best = found
        return True


def _text(verdict: Verdict, states: list[State], steps: list[list[Operation]]) -> str:
    lines = [f"{verdict.missed} is violated at {verdict.scope} level: {verdict.subject}"]
    lines += [f"  state {s.number}   {_seen(s)}" for s in states[-8:]]
    lines.append(f"  wrong        {verdict.why}")
    shown = ["; ".join(map(str, step)) for step in steps[-12:]]
    lines.append("  operations   " + (" | ".join(shown) or "none"))
    lines.append(f"  reached      {verdict.reached or 'no level'}")
    return "\n".join(lines)


def _seen(state: State) -> str:
    rows = [", ".join(f"{c} {v}" for c, v in row.items()) for row in state.rows[:5]]
    more = f" | and {len(state.rows) - 5} more" if len(state.rows) > 5 else ""
    return (" | ".join(rows) or "no row") + more
