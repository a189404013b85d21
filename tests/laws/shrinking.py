"""Smaller cases that fail as well: fewer actions, fewer operations, plainer settings, and simpler
queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp

from belvedere.epochs.settings import Settings
from belvedere.sql.dialect import parse, sql_of
from tests.laws.script import Action, Case, Create, Run, Write

_SECONDS = 30.0
_PLAIN = (("store", "memory"), ("slots", 1), ("streams", 1), ("settings", Settings()))


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case that fails and none of whose simpler forms does, as far as the time allows."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        smaller = next(
            (c for c in _simpler(case) if time.monotonic() < deadline and fails(c)), None
        )
        if smaller is None:
            break
        case = smaller
    return case


def _simpler(case: Case) -> Iterator[Case]:
    half = len(case.script) // 2
    if half > 1:
        yield replace(case, script=case.script[:half])
        yield replace(case, script=case.script[half:])
    for i in range(len(case.script)):
        yield replace(case, script=case.script[:i] + case.script[i + 1 :])
    for name, value in _PLAIN:
        if getattr(case, name) != value:
            yield replace(case, **{name: value})  # type: ignore[arg-type]  # _PLAIN has the types of the fields
    for i, base in enumerate(case.tables):
        if not base.before_images:
            yield replace(
                case,
                tables=(*case.tables[:i], replace(base, before_images=True), *case.tables[i + 1 :]),
            )
    for i, action in enumerate(case.script):
        for other in _simpler_actions(action):
            yield replace(case, script=(*case.script[:i], other, *case.script[i + 1 :]))


def _simpler_actions(action: Action) -> Iterator[Action]:
    if isinstance(action, Write):
        for i in range(len(action.operations)):
            if len(action.operations) > 1:
                yield replace(action, operations=action.operations[:i] + action.operations[i + 1 :])
    elif isinstance(action, Run) and action != Run(1):
        yield from {
            Run(1): 0,
            Run(action.tasks): 0,
            Run(1, action.dies_at, action.after): 0,
        }.keys() - {action}
    elif isinstance(action, Create):
        if action.view.key:
            yield replace(action, view=replace(action.view, key=()))
        for select in simpler_queries(action.view.select):
            yield replace(action, view=replace(action.view, select=select, types=()))


def simpler_queries(select: str) -> Iterator[str]:
    """The query without one of its parts; some of these mean nothing, which shows when they are
    tried.
    """
    size = len(list(parse(select).walk()))
    for i in range(size):
        for change in _CHANGES:
            tree = parse(select)
            node = list(tree.walk())[i]
            made = change(tree, node)
            if made is not None and (text := sql_of(made)) != select and len(text) < len(select):
                yield text


def _clause_gone(tree: exp.Expr, node: exp.Expr) -> exp.Expr | None:
    if (
        not isinstance(
            node,
            exp.Where
            | exp.Having
            | exp.Join
            | exp.Distinct
            | exp.Limit
            | exp.Order
            | exp.With
            | exp.CTE,
        )
        or node is tree
    ):
        return None
    node.pop()
    return tree


def _item_gone(tree: exp.Expr, node: exp.Expr) -> exp.Expr | None:
    parent = node.parent
    lists = isinstance(parent, exp.Select | exp.Group | exp.Order) and node.arg_key == "expressions"
    if not lists or parent is None or len(parent.expressions) < 2:
        return None
    node.pop()
    return tree


def _one_side(tree: exp.Expr, node: exp.Expr) -> exp.Expr | None:
    """One side of a set operation or of AND and OR."""
    if not isinstance(node, exp.SetOperation | exp.Connector):
        return None
    left = node.left if isinstance(node, exp.Connector) else node.this
    return _put(tree, node, left)


def _other_side(tree: exp.Expr, node: exp.Expr) -> exp.Expr | None:
    return (
        _put(tree, node, node.expression)
        if isinstance(node, exp.SetOperation | exp.Connector)
        else None
    )


def _inner(tree: exp.Expr, node: exp.Expr) -> exp.Expr | None:
    """A query inside instead of the whole; a function's or a cast's argument instead of it."""
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
        return node.this
    if isinstance(node, exp.Coalesce | exp.Neg | exp.Paren | exp.Not | exp.Filter) and isinstance(
        node.this, exp.Expr
    ):
        return _put(tree, node, node.this)
    return None


def _put(tree: exp.Expr, node: exp.Expr, other: exp.Expr) -> exp.Expr:
    if node is tree:
        return other
    node.replace(other)
    return tree


_CHANGES = (_inner, _clause_gone, _one_side, _other_side, _item_gone)
