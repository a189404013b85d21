"""A history in, verdicts out: one per observer for a whole view, one per observer and record.

Levels build on each other. Convergence is judged if the history says that the view is final: then
the last state that anybody saw must be that of all operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import cast

from belvedere.consistency import decode
from belvedere.consistency.history import History, Key, State, View
from belvedere.consistency.lattice import (
    LIMIT,
    Lattice,
    Point,
    first_backward,
    first_skipped,
    first_strange,
)
from belvedere.consistency.levels import (
    COMPLETE,
    CONVERGENT,
    LEVELS,
    RECORD,
    STRONG,
    WEAK,
    WHOLE,
    Undecided,
    Verdict,
    check_level,
)
from belvedere.consistency.recompute import Content, Recomputation, content
from belvedere.consistency.sources import Source, by_row, by_stream
from belvedere.consistency.witness import shrink

Subject = tuple[str, Key | None, str]  # view, record or whole, observer


def judge(
    history: History, limit: int = LIMIT, explain: bool = True, up_to: str = COMPLETE
) -> list[Verdict]:
    """A verdict for everything that was seen, with witnesses if they are wanted.

    Levels beyond `up_to` are not looked at: complete consistency needs every source state.
    """
    check_level(up_to)
    found: list[Verdict] = []
    with closing(Recomputation(history)) as recompute:
        for subject in subjects(history):
            found.append(_Case(history, subject, recompute, limit, up_to).verdict())
    if not explain:
        return found
    return [_explained(history, v, limit) if v.missed in LEVELS[:3] else v for v in found]


def check(history: History, level: str, limit: int = LIMIT) -> list[Verdict]:
    """The verdicts that miss a level, or cannot be decided."""
    found = judge(history, limit, up_to=level)
    return [v for v in found if v.holds(check_level(level)) is not True]


def subjects(history: History) -> list[Subject]:
    return list(dict.fromkeys((s.view, s.record, s.by) for s in history.states))


@dataclass(slots=True)
class _Case:
    history: History
    subject: Subject
    recompute: Recomputation
    limit: int
    up_to: str

    @property
    def view(self) -> View:
        return self.history.views[self.subject[0]]

    @property
    def states(self) -> list[State]:
        return [s for s in self.history.states if (s.view, s.record, s.by) == self.subject]

    def verdict(self) -> Verdict:
        """The levels from below, until one is violated or cannot be decided."""
        view, record, by = self.subject
        scope = WHOLE if record is None else RECORD
        verdict = Verdict(view, scope, record, by, None)
        for level, test in self._tests():
            if LEVELS.index(level) > LEVELS.index(self.up_to):
                break
            try:
                wrong = test()
            except Undecided as error:
                return replace(verdict, unknown=f"{level}: {error}")
            if wrong:
                # states that go back are states that DuckDB has found
                doubt = "" if level == STRONG else self.recompute.doubt(self.view)
                if doubt:
                    unknown = f"{level}: Spark and DuckDB may not agree on {doubt}"
                    return replace(verdict, unknown=unknown)
                return replace(verdict, missed=level, why=wrong)
            verdict = replace(verdict, reached=level)
        return verdict

    def _tests(self) -> Iterable[tuple[str, Callable[[], str]]]:
        yield CONVERGENT, self._converges
        decoder = self._decoder()
        if decoder is not None:
            yield from self._decoded(decoder)
        else:
            yield from self._searched()
        yield COMPLETE, self._is_complete

    def _converges(self) -> str:
        view, record, _ = self.subject
        if view not in self.history.final:
            return ""
        last = [s for s in self.history.states if (s.view, s.record) == (view, record)][-1]
        source = by_stream(self.history, self.view)
        right = self._value(source, source.last)
        if last.by != self.subject[2] or content(last.rows) == right:
            return ""
        return f"state {last.number} is the last: {_shown(last)}, and should be {_rows(right)}"

    def _searched(self) -> Iterable[tuple[str, Callable[[], str]]]:
        whole = self.subject[1] is None
        source = (by_stream if whole else by_row)(self.history, self.view)
        lattice = self._lattice(source)
        states, hints = self.states, [source.point(s.at) if whole else None for s in self.states]
        seen = [content(s.rows) for s in states]
        backward: list[int | None] = []

        def weak() -> str:
            backward.append(first_backward(lattice, seen, hints))
            number = None if backward[0] is None else first_strange(lattice, seen)
            return "" if number is None else f"{_named(states[number])} is no state of the source"

        def strong() -> str:
            number = backward[0]
            return "" if number is None else self._back(states[number])

        return [(WEAK, weak), (STRONG, strong)]

    def _back(self, state: State) -> str:
        return f"{_named(state)} is of a source state before those of the states seen earlier"

    def _decoder(self) -> decode.Decoder | None:
        record = self.subject[1]
        if record is None:
            return None
        source = by_row(self.history, self.view)
        return decode.decoder(self.view, source, record, self.recompute, self.states)

    def _decoded(self, decoder: decode.Decoder) -> Iterable[tuple[str, Callable[[], str]]]:
        states, source = self.states, by_row(self.history, self.view)
        allowed = [decoder.allowed(s.rows) for s in states]

        def weak() -> str:
            number = decode.first_strange(allowed, source.first)
            if number is None:
                return ""
            return f"{_named(states[number])} is not made of row versions"

        def strong() -> str:
            found = decode.first_backward(allowed, source.first)
            if found is None:
                return ""
            number, row, version = found
            line = source.lines[row]
            facts = allowed[number]
            assert facts is not None
            before, now = _version(line, version), _version(line, max(facts[row]))
            key = ", ".join(map(str, line[0][0].key))
            return f"{_named(states[number])}: {key} goes back from {before} to {now}"

        return [(WEAK, weak), (STRONG, strong)]

    def _is_complete(self) -> str:
        source = by_stream(self.history, self.view)
        lattice = self._lattice(source)
        found = first_skipped(lattice, [content(s.rows) for s in self.states])
        if found is None:
            return ""
        reached, point = found
        after = f"after {reached} change(s) that were seen"
        following = list(lattice.next(point))
        if not following:
            return f"{after} no transaction is left, but other states were seen"
        return f"{after}, {_skipped(source, point, following[0], lattice)}"

    def _lattice(self, source: Source) -> Lattice:
        return Lattice(
            source.first, source.last, lambda point: self._value(source, point), self.limit
        )

    def _value(self, source: Source, point: Point) -> Content:
        if (record := self.subject[1]) is not None:
            return content(self.recompute.record(self.view, source.rows(point), record))
        return content(self.recompute.rows(self.view, source.rows(point)))


def _skipped(source: Source, point: Point, following: Point, lattice: Lattice) -> str:
    """The next transaction, in words, which nobody saw."""
    line = next(n for n, (a, b) in enumerate(zip(point, following, strict=True)) if a < b)
    operations = "; ".join(map(str, source.lines[line][point[line]]))
    shown = _rows(cast("Content", lattice.value(following)))
    return f"a state of the source is never shown: {shown}, by operation {operations}"


def _version(line: Sequence[Sequence[object]], version: int) -> str:
    if version == 0:
        return "before its first version"
    return f"version {getattr(line[version - 1][-1], 'number', version)}"


def _named(state: State) -> str:
    where = "" if state.epoch is None else f" (epoch {state.epoch})"
    return f"state {state.number}{where}: {_shown(state)}"


def _shown(state: State) -> str:
    return _rows(content(state.rows))


def _rows(found: Content) -> str:
    texts = [
        ", ".join(f"{c} {v}" for c, v in row) + (f" ({n} times)" if n > 1 else "")
        for row, n in sorted(found, key=repr)
    ]
    return " | ".join(texts[:5]) + (f" | and {len(texts) - 5} more" if len(texts) > 5 else "") or (
        "no row"
    )


def _explained(history: History, verdict: Verdict, limit: int) -> Verdict:
    """With a small history that misses the same level."""
    level = verdict.missed
    assert level is not None

    def still_wrong(smaller: History) -> Verdict | None:
        subject = (verdict.view, verdict.record, verdict.by)
        with closing(Recomputation(smaller)) as recompute:
            found = _Case(smaller, subject, recompute, limit, level).verdict()
        return found if found.missed == level else None

    return shrink(history, verdict, still_wrong)
