"""Gaps: why there is no record, step by step until something is missing, or something is in its
way.
"""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.graph import Node
from belvedere.libraries import pa
from belvedere.operators.lineage import Pieces, Wanted
from belvedere.why.finding import Finder
from belvedere.why.tracing import Traced, trace_from


@dataclass(frozen=True, slots=True)
class Reason:
    """One step of the answer: what an operator, or a base table, says. `rows` are there, and are
    the reason; `beside` are reasons of the branches of a UNION ALL, each enough.
    """

    node: int
    where: str
    text: str
    rows: Traced | None = None
    beside: tuple[tuple[Reason, ...], ...] = ()


def reasons(finder: Finder, node: Node, wanted: Wanted) -> tuple[Reason, ...]:
    """Why no row of a node is wanted; the last one says it, those before where it comes from."""
    where = finder.table(node).name if node.source else finder.texts.describe(node)
    gap = node.operator.why_not(wanted, finder.below(node))
    if gap.port < 0:
        return (Reason(node.id, where, gap.text),)
    inputs = [finder.nodes[i] for i in node.inputs[gap.port]]
    if gap.rows is not None:
        return (Reason(node.id, where, gap.text, _made_of(finder, inputs, gap.rows)),)
    said = (Reason(node.id, where, gap.text),) if gap.text else ()
    assert gap.wanted is not None  # else it has rows
    below = tuple(reasons(finder, each, gap.wanted) for each in inputs)
    if len(below) == 1:
        return (*said, *below[0])
    text = gap.text or f"none of {len(below)} branches has it"
    return (Reason(node.id, where, text, beside=below),)


def _made_of(finder: Finder, inputs: list[Node], rows: pa.Table) -> Traced:
    """What the rows of an input are made of; branches know theirs by the identity."""
    found: dict[int, Pieces] = {}
    for each in inputs:
        found.update(trace_from(finder, each, Pieces.undecided(rows)))
    return found
