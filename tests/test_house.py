"""What `tests/house.py` measures and must not come back: import cycles, functions written twice."""

from __future__ import annotations

import ast

from tests.house import (
    ALIKE,
    Function,
    copies,
    cycles,
    functions,
    likeness,
    report,
    sql_modules,
    tokens_of,
)
from tests.test_conventions import imports, modules, none_of, python_files

MOST_NODES = 300


def test_no_modules_need_each_other_while_they_are_loaded() -> None:
    none_of((" - ".join(ring) for ring in cycles()), "one of them must not know the other")


def test_no_function_is_dense() -> None:
    """But commands with all their options, the benchmark's data, and one that is made for speed."""
    made_for_speed = {"encoding.one_row.dict_decoder"}
    names = [name for name in modules() if not name.startswith(("cli", "bench"))]
    dense = [f for f in functions(names) if f.nodes > MOST_NODES and f.name not in made_for_speed]
    none_of((f"{f.name} has {f.nodes} syntax nodes" for f in dense), "name its steps")


def function(text: str) -> Function:
    (node,) = ast.parse(text).body
    assert isinstance(node, Function)
    return node


def test_the_search_for_copies_bites() -> None:
    one = function("def one(names: Names, name: str) -> Field:\n    return names.find(name)[0]")
    copy = function("def first(stage: Stage, what: str) -> Field:\n    return stage.find(what)[0]")
    other = function("def other(stage, what):\n    return sorted(stage.fields, key=what)[0]")
    assert likeness(tokens_of(one), tokens_of(copy)) == 1
    assert likeness(tokens_of(one), tokens_of(other)) < ALIKE


def test_the_report_has_all_its_parts() -> None:
    text = "\n".join(report(python_files("src")))
    for part in ("syntax nodes of a function", "import cycles", "type tests", "written twice"):
        assert part in text


def test_no_function_of_the_sql_packages_is_written_twice() -> None:
    pairs = (f"{alike:.0%} {a.name} = {b.name}" for alike, a, b in copies(sql_modules()))
    none_of(pairs, "bind it once, in sql/front, and say who refuses")


def test_the_back_ends_of_sql_do_not_know_each_other() -> None:
    """Nor does the front end know either of them."""
    apart = {
        "sql.front": ("sql.plan", "sql.query"),
        "sql.plan": ("sql.query",),
        "sql.query": ("sql.plan",),
    }
    found = [
        f"{name} imports {target}"
        for room, others in apart.items()
        for name in sql_modules()
        if name.startswith(room)
        for target, _ in imports(name)
        if target.startswith(others)
    ]
    none_of(found, "what both need is bound in sql/front")
