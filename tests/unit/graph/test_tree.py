"""EXPLAIN as data: the tree has every node, and says of each what the text says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from belvedere.explain import Explained, explain, explain_tree
from belvedere.graph import Graph
from belvedere.sql.planner import plan_view
from tests.golden.tables import TABLES, VIEWS
from tests.golden.test_plans import FILES, statement_of


def flat(node: Explained) -> Iterator[Explained]:
    yield node
    for child in node.inputs:
        yield from flat(child)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_tree_has_every_node_and_the_text_draws_it(file: Path) -> None:
    select, key = statement_of(file)
    planned = plan_view(select, key, [t.info for t in TABLES], VIEWS)
    drawn = list(flat(explain_tree(planned, TABLES)))
    first = [node for node in drawn if not node.again]
    graph = Graph.of(planned.nodes)
    twice = sum(len(graph.consumers[n.id]) - 1 for n in planned.nodes[:-1] if not n.inputs)
    assert len(first) == len(planned.nodes) + twice  # a table is drawn wherever it is read
    lines = explain(planned, "example", TABLES).splitlines()[1:]
    assert len(lines) == len(drawn)
    for node, line in zip(drawn, lines, strict=True):
        assert node.operator in line
        assert node.what in line
        assert ("⇄" in line) == (node.exchange and not node.again)


def test_what_others_keep_is_named_where_it_is_kept() -> None:
    planned = plan_view(
        "SELECT region, count(*) AS n FROM orders GROUP BY region", (), [TABLES[0].info]
    )
    users = {node.id: ("other",) for node in planned.nodes}
    for node in flat(explain_tree(planned, TABLES, users)):
        assert node.shared == (("other",) if node.state else ())
