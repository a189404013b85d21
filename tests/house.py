"""The house in numbers: `python -m tests.house` measures the source tree.

    sizes       lines of files and functions, syntax nodes of functions and per line
    words       comments per 100 lines, length of lines
    imports     cycles at load, edges against the layers of tests/test_conventions.py
    operators   type tests on operator classes outside operators/
    SQL         pairs of functions in different modules of sql/ that are nearly equal

`tests/test_house.py` holds what must not come back.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path

from tests.test_conventions import (
    absolute,
    existing,
    imports,
    may_import,
    modules,
    python_files,
    tree_of,
)

ALIKE = 0.9  # functions that agree in so much of their syntax are one function, written twice
SMALLEST = 25  # syntax nodes below which functions are alike by chance

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Written:
    """A function, and where it stands."""

    module: str
    node: Function

    @property
    def name(self) -> str:
        return f"{self.module}.{self.node.name}"

    @property
    def nodes(self) -> int:
        return sum(1 for _ in ast.walk(self.node))

    @property
    def lines(self) -> int:
        return (self.node.end_lineno or self.node.lineno) - self.node.lineno + 1


def functions(names: Iterable[str]) -> list[Written]:
    return [
        Written(name, node)
        for name in names
        for node in ast.walk(tree_of(modules()[name]))
        if isinstance(node, Function)
    ]


# ---------------------------------------------------------------- functions written twice


def tokens_of(function: Function) -> list[str]:
    """The syntax of a function as words, from the top down.

    Its own name, its annotations, its docstring and the names of its variables are left out: a copy
    in which only these differ is a copy.
    """
    body = function.body[1:] if ast.get_docstring(function) else function.body
    arguments = [a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)]
    assigned = [
        n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    own = {*arguments, *assigned}
    return [word for statement in body for word in _words(statement, own)]


def _words(node: ast.AST, own: set[str]) -> Iterator[str]:
    match node:
        case ast.Name():
            yield "_" if node.id in own else node.id
        case ast.Constant():
            yield repr(node.value)
        case ast.Attribute():
            yield f".{node.attr}"
        case ast.keyword():
            yield f"{node.arg}="
        case ast.arg():
            yield "argument"
        case _:
            yield type(node).__name__
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "ctx"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _words(child, own)


def copies(names: Iterable[str]) -> list[tuple[float, Written, Written]]:
    """The pairs of functions in different modules that are nearly equal, the most equal first."""
    large = [f for f in functions(names) if f.nodes >= SMALLEST]
    tokens = {id(f): tokens_of(f.node) for f in large}
    found = []
    for a, b in combinations(large, 2):
        if a.module != b.module:
            alike = likeness(tokens[id(a)], tokens[id(b)])
            if alike >= ALIKE:
                found.append((alike, a, b))
    return sorted(found, key=lambda pair: -pair[0])


def likeness(a: Sequence[str], b: Sequence[str]) -> float:
    """How much of two texts agrees, from 0 to 1; 0 where bounds that cost less say that it is below
    `ALIKE`.
    """
    if 2 * min(len(a), len(b)) < ALIKE * (len(a) + len(b)):
        return 0.0
    common = sum((Counter(a) & Counter(b)).values())
    if 2 * common < ALIKE * (len(a) + len(b)):
        return 0.0
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def sql_modules() -> list[str]:
    return [name for name in modules() if name == "sql" or name.startswith("sql.")]


# ---------------------------------------------------------------- imports


def loaded(name: str) -> set[str]:
    """The modules of belvedere that a module imports while it is loaded: not in a function, and not
    for types only.
    """
    path = modules()[name]
    found: set[str] = set()
    for node in _at_load(tree_of(path).body):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            targets = [f"{absolute(name, path, node)}.{alias.name}" for alias in node.names]
        own = [t.removeprefix("belvedere").removeprefix(".") for t in targets if _is_ours(t)]
        found.update(existing(target) for target in own)
    return found - {name}


def _is_ours(target: str) -> bool:
    return target == "belvedere" or target.startswith("belvedere.")


def _at_load(body: Sequence[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" not in ast.unparse(statement.test):
            yield from _at_load([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            yield from _at_load([*statement.body, *statement.orelse, *statement.finalbody])


def cycles() -> list[list[str]]:
    """Modules that need each other while they are loaded.

    Edges from a package to its own modules do not count, nor those to belvedere itself: a module
    is found without what its package goes on to import.
    """
    edges = {name: {t for t in loaded(name) if t and t in modules()} for name in modules() if name}
    found: list[list[str]] = []
    done: set[str] = set()
    for start in edges:
        if start in done:
            continue
        ring = sorted(n for n in _reached(start, edges) if start in _reached(n, edges))
        if ring:
            found.append(ring)
            done.update(ring)
    return found


def _reached(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in edges[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def back_edges() -> list[str]:
    return [
        f"{name} -> {target}"
        for name in modules()
        for target, _ in imports(name)
        if not may_import(name, target)
    ]


# ---------------------------------------------------------------- type tests


def type_tests() -> Counter[str]:
    """How often a module outside operators/ asks which class of operator it has."""
    classes = {
        node.name
        for name in modules()
        if name.startswith("operators.")
        for node in tree_of(modules()[name]).body
        if isinstance(node, ast.ClassDef)
    }
    found: Counter[str] = Counter()
    for name, path in modules().items():
        if not name.startswith("operators"):
            found[name] = sum(_asks_for(node, classes) for node in ast.walk(tree_of(path)))
    return +found


def _asks_for(node: ast.AST, classes: set[str]) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and any(isinstance(n, ast.Name) and n.id in classes for n in ast.walk(node.args[1]))
    )


# ---------------------------------------------------------------- the report


def spread(values: Iterable[float]) -> str:
    """Median, nine tenths, largest."""
    ordered = sorted(values)
    ninth = ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)]
    return f"{statistics.median(ordered):g} / {ninth:g} / {ordered[-1]:g}"


def comments(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def report(files: Sequence[Path]) -> Iterator[str]:
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    sizes = [len(text.splitlines()) for text in texts.values()]
    lines = [line for text in texts.values() for line in text.splitlines() if line.strip()]
    written = functions(modules())
    yield f"files                      {len(files)}, {sum(sizes)} lines"
    yield f"lines of a file            {spread(sizes)}   (median / p90 / largest)"
    yield f"functions                  {len(written)}"
    yield f"lines of a function        {spread(f.lines for f in written)}"
    yield f"syntax nodes of a function {spread(f.nodes for f in written)}"
    yield f"syntax nodes of a line     {_density(texts)}"
    lengths = sorted(map(len, lines))
    yield f"length of a line, p90      {lengths[len(lengths) * 9 // 10]}"
    share = 100 * sum(map(comments, texts.values())) / sum(sizes)
    yield f"comments per 100 lines     {share:.1f}"
    yield from _listed("import cycles at load", (" - ".join(ring) for ring in cycles()))
    yield from _listed("edges against the layers", back_edges())
    tests = type_tests()
    yield from _listed(
        f"type tests on operators    {tests.total()} in",
        (f"{number:3} {name}" for name, number in tests.most_common()),
    )
    yield from _listed(
        "functions of sql/ that are written twice",
        (f"{alike:.0%} {a.name} = {b.name}" for alike, a, b in copies(sql_modules())),
    )
    densest = sorted(written, key=lambda f: -f.nodes)[:20]
    yield from _listed("densest functions", (f"{f.nodes:4} {f.name}" for f in densest), count=False)


def _density(texts: dict[Path, str]) -> str:
    per_line = []
    for path, text in texts.items():
        code = [line for line in text.splitlines() if line.strip()]
        if code:
            per_line.append(sum(1 for _ in ast.walk(tree_of(path))) / len(code))
    return f"{statistics.median(per_line):.1f}   (median of the files)"


def _listed(title: str, lines: Iterable[str], count: bool = True) -> Iterator[str]:
    every = list(lines)
    yield f"{title}: {len(every) or 'none'}" if count else title
    yield from (f"    {line}" for line in every)


if __name__ == "__main__":
    sys.stdout.write("\n".join(report(python_files("src"))) + "\n")
