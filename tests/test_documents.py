"""House rules of the documents: their width, what they name, and what comments name of them.

`tests/integration/test_docs.py` runs the examples; here nothing is run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_conventions import PACKAGE, ROOT, none_of, place, python_files, tree_of

WIDTH = 120
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Not wrapped yet. A page that is goes from here, and none comes.
WIDE: set[str] = set()
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))

# Lists that were never in the repository: nobody could look up what is meant.
ELSEWHERE = re.compile(r"\b[Rr]ows? [A-Z]\d{1,2}\b|\b[Rr]eviews? \d+\b|\b[Ff]indings? \d+\b")
DOCUMENT = re.compile(r"[\w./-]*\w\.md\b")
MODULE = re.compile(r"`([\w./-]*\w\.py)`")
HEAD = re.compile(
    r"# \d+\. \S.*\n\n"
    r"Date: \d{4}-\d{2}-\d{2}\n"
    r"Status: (?:proposed|accepted|superseded by \[decision \d+\]|accepted; \[decision \d+\])"
)


# ---------------------------------------------------------------- width


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither code nor a row of a table, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("|", "    ")):
            yield number, line


def test_documents_are_wrapped() -> None:
    found, wide = [], set()
    for page in DOCUMENTS:
        for number, line in prose(page.read_text(encoding="utf-8")):
            if len(line) > WIDTH:
                found.append(f"{place(page, number)} has {len(line)} columns")
                wide.add(page.relative_to(ROOT).as_posix())
    found = [line for line in found if line.partition(":")[0] not in WIDE]
    none_of(WIDE - wide, "wrapped now: take these from WIDE")
    none_of(found, f"wrap at {WIDTH} columns: tables and code may be wider")


def test_the_search_for_wide_lines_bites() -> None:
    wide = "x" * (WIDTH + 1)
    text = f"| {wide} |\n\n```text\n{wide}\n```\n\n    {wide}\n\n- {wide}\n"
    assert [number for number, line in prose(text) if len(line) > WIDTH] == [9]


# ---------------------------------------------------------------- decisions


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_a_date_and_a_status(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert HEAD.match(text), "under the title: Date: YYYY-MM-DD, then Status: accepted"
    assert text.startswith(f"# {int(page.stem[:3])}. "), "the number of its file"


# ---------------------------------------------------------------- names


def remarks(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings and comments of a module, with the line where each begins."""
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if text := ast.get_docstring(node, clean=False):
            yield node.body[0].lineno, text
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if "# " in line:
            yield number, line.partition("# ")[2]


def is_there(path: Path, name: str) -> bool:
    """A name is read from the top, from the package, from `docs`, or from where it is written."""
    places = (ROOT, PACKAGE, ROOT / "docs", *path.parents[: len(path.relative_to(ROOT).parts)])
    return any((folder / name).exists() for folder in places)


def test_every_file_that_a_comment_names_is_there() -> None:
    found = []
    for path in python_files("src", "tests", "docs"):
        for number, text in remarks(path):
            for name in [*DOCUMENT.findall(text), *MODULE.findall(text)]:
                if not is_there(path, name):
                    found.append(f"{place(path, number)} {name}")
    none_of(found, "these files are not in the repository")


def test_nothing_refers_to_lists_that_are_not_in_the_repository() -> None:
    found = []
    for path in [*python_files("src", "tests", "docs"), *DOCUMENTS]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if ELSEWHERE.search(line):
                found.append(f"{place(path, number)} {line.strip()[:100]}")
    none_of(found, "say it in words, or name a rule of docs/rules.md")


def test_the_search_for_such_lists_bites() -> None:
    letter, number = "C", 7
    assert ELSEWHERE.search(f"reads its own writes (row {letter}{number})")
    assert ELSEWHERE.search(f"raises Stale (review {number})")
    assert not ELSEWHERE.search("the row c7 of the table, rows 1 to 7")


def test_every_rule_that_a_comment_names_is_on_its_page() -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    rules = set(re.findall(r"^### (R\d+): ", page, re.MULTILINE))
    assert rules == {f"R{number}" for number in range(1, 11)}
    found = []
    for path in python_files("src"):
        for number, text in remarks(path):
            named = set(re.findall(r"\brules?\s+(R\d+)", text))
            found += [f"{place(path, number)} {name}" for name in sorted(named - rules)]
    none_of(found, "docs/rules.md does not have these rules")


# ---------------------------------------------------------------- the map and the tree of errors


def rooms() -> set[str]:
    """What stands directly in the package: `operators/`, `table.py`."""
    packages = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    return packages | modules


def test_the_maps_name_every_package_and_module_at_the_top() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = architecture.partition("## The map")[2].partition("\n## ")[0]
    docstring = ast.get_docstring(tree_of(PACKAGE / "__init__.py")) or ""
    none_of([name for name in rooms() if f"`{name}`" not in table], "not in ARCHITECTURE.md")
    none_of([name for name in rooms() if name not in docstring], "not in belvedere/__init__.py")


def error_classes() -> set[str]:
    """The public classes of the source that are, through whatever bases, a BelvedereError."""
    bases: dict[str, set[str]] = {}
    for path in python_files("src"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                names = {base.id for base in node.bases if isinstance(base, ast.Name)}
                bases.setdefault(node.name, set()).update(names)
    errors, grown = set[str](), {"BelvedereError"}
    while grown:
        errors |= grown
        grown = {name for name, above in bases.items() if above & errors} - errors
    return {name for name in errors if not name.startswith("_")}


def test_the_tree_of_errors_names_every_error_and_no_other() -> None:
    docstring = ast.get_docstring(tree_of(PACKAGE / "errors.py")) or ""
    drawn = set(re.findall(r"^[│ ]*[├└]── (\w+)", docstring, re.MULTILINE))
    assert drawn | {"BelvedereError"} == error_classes()
