"""Why a view has a record: which base rows make it, which of them decide, what wrote them.

    state.py        one slot as of a cut, as operators read it
    finding.py      rows of any node that are wanted, from state where it tells, else from below
    indexes.py      rows of base tables, by what any live view keeps of them
    tracing.py      from a record down to base rows: every node's rows that make it up
    gaps.py         what is missing where there is no record
    operations.py   the logged operations on these rows
    answer.py       all of it, as users hold it in their hands
    text.py         the same as a tree

What a row of one operator is made of is said by that operator (`operators.lineage`).
"""

from belvedere.why.answer import Why, why

__all__ = ["Why", "why"]
