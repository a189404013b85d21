"""The answer as a tree: the record, the operators on the way, and base rows as leaves.

    revenue  region 'emea', as of epoch 2
    region 'emea', total 12, n 2
    └─ Aggregate  by region: sum(amount), count(*)
       └─ orders: 2 rows
          ├─ id 'o1', region 'emea', amount 5   decides   put at s0:0, 2026-11-18 10:00:00
          └─ id 'o2', region 'emea', amount 7   decides   put at s0:1, 2026-11-18 10:00:00

Operators that only pass rows on are left out. Of each table 100 rows are shown, of
each value 200 characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belvedere.operators.base import Stateless, ViewTable
from belvedere.operators.lineage import literal
from belvedere.why.gaps import Reason

if TYPE_CHECKING:
    from belvedere.graph import Node
    from belvedere.why.answer import BaseRows, Why

SHOWN = 100
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of the tree, and what is below it."""

    text: str
    below: tuple[Branch, ...] = ()


def as_text(why: Why) -> str:
    named = zip(why._definition.schema.key, why.key, strict=True)
    key = ", ".join(f"{name} {literal(value)}" for name, value in named)
    lines = [f"{why.view}  {key + ', ' if key else ''}as of epoch {why.epoch}"]
    if why.row is None:
        lines.append("there is no such record")
        branches = _reasons(why, why._reasons)
    else:
        times = f"   {why.count} times" if why.count > 1 else ""
        lines.append(_row(why.row) + times)
        branches = _Tree(why).of(why._definition.planned.nodes[-1])
    lines += [line for branch in _placed(branches) for line in branch]
    return "\n".join([*lines, *(f"({note})" for note in why.notes)])


def reasons_to_dicts(why: Why, reasons: Sequence[Reason]) -> list[dict[str, Any]]:
    return [
        {
            "where": reason.where,
            "text": reason.text,
            **({"rows": _found(why, reason)} if reason.rows else {}),
            **(
                {"branches": [reasons_to_dicts(why, branch) for branch in reason.beside]}
                if reason.beside
                else {}
            ),
        }
        for reason in reasons
    ]


class _Tree:
    """The operators of a view from its end on; one that stands there already is not drawn twice."""

    def __init__(self, why: Why) -> None:
        self.why = why
        self.nodes = {node.id: node for node in why._definition.planned.nodes}
        self.drawn: set[int] = set()

    def of(self, node: Node) -> tuple[Branch, ...]:
        below = tuple(branch for i in node.below for branch in self.of(self.nodes[i]))
        if node.source:
            return (self._table(node),)
        operator = node.operator
        if isinstance(operator, ViewTable | Stateless):
            return below
        what = f"{type(operator).__name__}  {self.why._texts.describe(node)}"
        return (Branch(what, below),)

    def _table(self, node: Node) -> Branch:
        found = next(t for t in self.why._tables.values() if t.table.id == node.operator.base_table)
        if node.id in self.drawn:
            return Branch(f"{found.table.name}: as above")
        self.drawn.add(node.id)
        return _table(self.why, found)


def _table(why: Why, found: BaseRows) -> Branch:
    name, total = found.table.name, len(found.keys)
    if not total:
        return Branch(f"{name}: no row")
    logged = why.logged(name)
    rows = found.to_arrow().slice(0, SHOWN).to_pylist()
    lines = []
    for key, row in zip(found.keys.slice(0, SHOWN).to_pylist(), rows, strict=True):
        decides, beside = row.pop("_decides"), row.pop("_beside")
        entries = logged.by_key.get(key)
        said = entries[-1].text if entries else logged.before()
        mark = "   decides" if decides else "   beside" if beside else ""
        lines.append(Branch(f"{_row(row)}{mark}   {said}"))
    if total > SHOWN:
        lines.append(Branch(f"and {total - SHOWN} more"))
    return Branch(f"{name}: {total} {'row' if total == 1 else 'rows'}", tuple(lines))


def _reasons(why: Why, reasons: Sequence[Reason]) -> tuple[Branch, ...]:
    """Each reason is below the one that leads to it."""
    if not reasons:
        return ()
    first, rest = reasons[0], reasons[1:]
    evidence = tuple(
        Branch(f"{name}: {_row(row)}")
        for name, rows in _found(why, first).items()
        for row in rows[:SHOWN]
    )
    beside = tuple(branch for some in first.beside for branch in _reasons(why, some))
    return (Branch(f"{first.where}: {first.text}", (*evidence, *beside, *_reasons(why, rest))),)


def _found(why: Why, reason: Reason) -> dict[str, list[dict[str, Any]]]:
    """The base rows that are the reason, by table."""
    found = {}
    for node in why._definition.planned.nodes:
        pieces = (reason.rows or {}).get(node.id)
        if node.source and pieces is not None and len(pieces):
            table = next(
                t.table for t in why._tables.values() if t.table.id == node.operator.base_table
            )
            rows = pieces.rows.drop_columns(["_id"]).rename_columns(table.schema.names)
            found[table.name] = rows.to_pylist()
    return found


def _row(row: _Row) -> str:
    return ", ".join(f"{name} {literal(value)}" for name, value in row.items())


def _placed(branches: Sequence[Branch], indent: str = "") -> Iterator[list[str]]:
    for number, branch in enumerate(branches, 1):
        last = number == len(branches)
        below = _placed(branch.below, indent + ("   " if last else "│  "))
        lines = [line for part in below for line in part]
        yield [indent + ("└─ " if last else "├─ ") + branch.text, *lines]
