"""Tracing: from rows at the end of a graph down to the base rows of which they are made.

    rows[end]      those of the record
    rows[input]    the union over all consumers of what their rows are made of

Consumers stand before their inputs here, so a node's rows are complete when it is asked. Over the
base rows found alone the view has the same record. Where a table is read on two ways that does not
follow: a row that is there for one way may be seen on the other, without what keeps it out there.
Then the rows that are `needed` are found too, node by node as conditions instead of rows; they are
enough for all wanted rows of every node on the way (`Operator.needs`). And then no row is said to
decide, because what a row does on one way it may undo on the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from belvedere.graph import Node
from belvedere.libraries import np, pa
from belvedere.operators.lineage import EVERYTHING, Pieces, Wanted, merged
from belvedere.why.finding import Finder

Traced = Mapping[int, Pieces]  # by node


@dataclass(frozen=True, slots=True)
class Start:
    """Where an explanation begins: a node, which rows of it make up the record, and which are
    wanted.
    """

    node: Node
    wanted: Wanted
    matters: frozenset[int]


def trace(finder: Finder, start: Start, rows: pa.Table) -> Traced:
    """The rows of every node that make up these rows of the first one."""
    decides = np.full(rows.num_rows, not reads_twice(finder, start.node))
    return trace_from(finder, start.node, Pieces(rows, decides, start.matters))


def trace_from(finder: Finder, node: Node, pieces: Pieces) -> Traced:
    found: dict[int, list[Pieces]] = {node.id: [pieces]}
    whole: dict[int, Pieces] = {}
    for each in consumers_first(finder, node):
        mine = whole[each.id] = merged(found.get(each.id, []))
        if not len(mine) and not each.source:
            mine = replace(mine, decides=np.zeros(0, bool))
        for port, made in enumerate(each.operator.made_of(mine, finder.below(each))):
            for i in each.inputs[port]:
                found.setdefault(i, []).append(made)
    return whole


def needed(finder: Finder, start: Start) -> dict[int, Wanted]:
    """Per base table, by its source's number: conditions on its rows, any of which will do."""
    asked: dict[int, list[Wanted]] = {start.node.id: [start.wanted]}
    tables: dict[int, list[Wanted]] = {}
    for each in consumers_first(finder, start.node):
        for wanted in _without_repetition(asked[each.id]):
            if each.source:
                tables.setdefault(each.id, []).append(wanted)
                continue
            for port, need in enumerate(each.operator.needs(wanted, finder.below(each))):
                for i in each.inputs[port]:
                    asked.setdefault(i, []).append(need)
    return {node: _any_of(finder, node, wanted) for node, wanted in tables.items()}


def _any_of(finder: Finder, source: int, conditions: list[Wanted]) -> Wanted:
    """The rows of a base table that satisfy any of some conditions, by their identities."""
    if any(wanted.everything for wanted in conditions):
        return EVERYTHING
    found = [finder.find(finder.nodes[source], wanted).column("_id") for wanted in conditions]
    return Wanted(ids=pa.concat_arrays([c.combine_chunks() for c in found]).unique())


def reads_twice(finder: Finder, node: Node) -> bool:
    """Whether a base table is reached on more than one way."""
    ways = {node.id: 1}
    for each in consumers_first(finder, node):
        if each.source and ways[each.id] > 1:
            return True
        for i in [i for port in each.inputs for i in port]:
            ways[i] = ways.get(i, 0) + ways[each.id]
    return False


def consumers_first(finder: Finder, node: Node) -> Iterator[Node]:
    """A node and all that feeds it, each behind all that it feeds."""
    wanted = {node.id}
    for each in reversed(finder.view.planned.nodes):
        if each.id in wanted:
            wanted.update(each.below)
            yield each


def _without_repetition(conditions: list[Wanted]) -> list[Wanted]:
    return [EVERYTHING] if any(w.everything for w in conditions) else conditions
