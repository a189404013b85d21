"""The tree of a view as text.

    paid  keyed by id
    └─ KeyedSink      one record per id                 level 2  ⇄ exchange  state: the view's table
       └─ Select      o.id, c.name                       level 1
          └─ Join     inner, o.customer = c.id           level 1
             ├─ Arrange      rows by o.customer: o.id    level 1  ⇄ exchange  state: rows
             │  └─ Source    changes of orders           level 0
             └─ Arrange      one row by c.id: c.name     level 0              state: rows  shared
                └─ ...

What other views keep already is marked as shared, and not drawn twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from belvedere.explain.tree import Explained, ExplainedTable, Users, explain_tree
from belvedere.sql.planned import PlannedView

# operator, what it does, level, exchange, state, shared
_Line = tuple[str, str, str, str, str, str]


def explain(
    planned: PlannedView, name: str, tables: Sequence[ExplainedTable], users: Users | None = None
) -> str:
    tree = explain_tree(planned, tables, users)
    return "\n".join([f"{name}  {_heading(planned)}", *_aligned(list(_draw(tree, "", True)))])


def _heading(planned: PlannedView) -> str:
    if not planned.unique:
        return f"equal rows are counted, in the order of {', '.join(planned.schema.key)}"
    return f"keyed by {', '.join(planned.schema.key)}" if planned.schema.key else "one row"


def _draw(node: Explained, indent: str, last: bool) -> Iterator[_Line]:
    yield _line(indent + ("└─ " if last else "├─ ") + node.operator, node)
    below = indent + ("   " if last else "│  ")
    for number, child in enumerate(node.inputs, 1):
        yield from _draw(child, below, number == len(node.inputs))


def _line(operator: str, node: Explained) -> _Line:
    if node.again:
        return operator, f"as above: {node.what}", "", "", "", ""
    return (
        operator,
        node.what,
        f"level {node.level}",
        "⇄ exchange" if node.exchange else "",
        f"state: {', '.join(node.state)}" if node.state else "",
        f"shared with {', '.join(node.shared)}" if node.shared else "",
    )


def _aligned(lines: Sequence[_Line]) -> list[str]:
    widths = [max(len(line[i]) for line in lines) for i in range(6)]
    shown = [(i, width) for i, width in enumerate(widths) if width]
    return ["  ".join(line[i].ljust(width) for i, width in shown).rstrip() for line in lines]
