"""Key knowledge: what the view itself knows of a relation need not be asked (section 9 of Strobe).

Where a row is joined with the whole key of another relation, of which the view shows all columns
that are needed, any view row with this key tells that relation's row. It is the row as of all that
was received, if no deletion of it waits to be applied: from the view alone it may be an old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol, TypeAlias

from belvedere.warehouse.machine import Term
from belvedere.warehouse.rows import Key, Row, Shape

Known: TypeAlias = Callable[[int, Key], Row | None]


class Knowledge(Protocol):
    def row(self, member: int, key: Key) -> Row | None:
        """A view row with this key of a member. None if there is none, and while anything is on
        its way to the view.
        """


def use(shape: Shape, term: Term, known: Known) -> list[Term]:
    """The same term in two: rows whose neighbour is known, joined with it, and the others."""
    member = term.changed
    for other in range(len(shape.members)):
        columns = _key_columns(shape, member, other)
        if columns is None or term.given[other] is not None:
            continue
        keys = [tuple(row[c] for c in columns) for row in term.given[member] or ()]
        found = [None if None in key else known(other, key) for key in keys]
        if any(row is not None for row in found):
            return _split(term, other, found)
    return [term]


def _split(term: Term, other: int, found: list[Row | None]) -> list[Term]:
    rows = term.given[term.changed] or ()
    pairs = list(zip(rows, found, strict=True))
    with_known = _with(term, term.changed, (row for row, known in pairs if known is not None))
    terms = [_with(with_known, other, dict.fromkeys(k for _, k in pairs if k is not None))]
    unknown = [row for row, known in pairs if known is None]
    return [*terms, _with(term, term.changed, unknown)] if unknown else terms


def _with(term: Term, member: int, rows: Iterable[Row]) -> Term:
    given = term.given
    return replace(term, given=(*given[:member], tuple(rows), *given[member + 1 :]))


def _key_columns(shape: Shape, member: int, other: int) -> tuple[int, ...] | None:
    """The columns of a member that hold the other's key, in its order."""
    shown = all((other, c) in shape.shown for c in range(len(shape.members[other].columns)))
    ties = {own: column for own, _, column in shape.meeting(other, {member})}
    if member == other or not shown or set(ties) != set(shape.members[other].key):
        return None
    return tuple(ties[c] for c in shape.members[other].key)


def row_of(shape: Shape, member: int, view_row: Row) -> Row:
    """A member's row, out of a view row that shows all its columns."""
    columns = range(len(shape.members[member].columns))
    return tuple(view_row[shape.shown.index((member, c))] for c in columns)
