"""The documents say the truth: their examples run and print what is shown, their lists are
complete, what they name exists.

A document's ```python blocks run in order, in one namespace and one temporary directory, on real
Spark. What a block prints is the ```text block that follows it; a block that is followed by none
prints nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from belvedere.expressions import SUPPORTED
from belvedere.sql import declaration

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*\.(?:py|md|toml|json))`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
MADE_BY_USERS = {"stores/yours.py", "format.json", "backup.json", "results.json"}


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in FENCE.finditer(text)]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


WITH_EXAMPLES = [
    page for page in PAGES if any(block.language == "python" for block in blocks(page))
]


@pytest.fixture(scope="module")
def spark() -> Iterator[None]:
    """One session for all examples: `belvedere.open` finds it.

    Verification of a few rows needs no 200 partitions.
    """
    from pyspark import SparkContext

    from belvedere.spark.session import session

    others = SparkContext._active_spark_context
    found = session(conf={"spark.sql.shuffle.partitions": "2"})
    yield
    if others is None:
        found.stop()


def run(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "example"}
    found = blocks(page)
    for block, following in zip(found, [*found[1:], Block("", "", 0)], strict=True):
        if block.language != "python":
            continue
        printed = io.StringIO()
        # so that a traceback names the page's line; without this module's __future__ imports
        text = "\n" * (block.line - 1) + block.text
        code = compile(text, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        shown = following.text if following.language == "text" else ""
        assert printed.getvalue() == shown, f"{page.name}:{block.line} prints something else"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.parametrize("shown", ["```text\n2\n```\n", ""], ids=["another output", "no output"])
def test_an_example_that_prints_something_else_is_noticed(shown: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```python\nprint(1)\n```\n\n{shown}", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md:2 prints something else"):
        run(page)


def test_the_readme_shows_an_example_with_its_output_before_line_30() -> None:
    first, second, *_ = blocks(ROOT / "README.md")
    assert (first.language, second.language) == ("python", "text")
    assert second.line + second.text.count("\n") < 30


# ---------------------------------------------------------------- lists


def expressions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_expressions", DOCS / "expressions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_expressions_is_the_allow_list() -> None:
    page = (DOCS / "sql.md").read_text(encoding="utf-8")
    assert page == expressions().with_table(page), "run: python docs/expressions.py"
    rows = [
        line.split(" | ")[0].removeprefix("| ").replace("\\|", "|")
        for line in expressions().table().splitlines()[2:]
    ]
    assert rows == [row.construct for row in SUPPORTED]


def test_every_option_of_tables_and_views_is_documented() -> None:
    page = (DOCS / "sql.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (table|view) \|", page, re.MULTILINE))
    expected = {
        **dict.fromkeys(declaration.TABLE_OPTIONS, "table"),
        **dict.fromkeys(declaration.VIEW_OPTIONS, "view"),
    }
    assert rows == expected


def test_every_command_is_documented_and_no_other() -> None:
    from typer.main import get_command

    from belvedere.cli.app import app

    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `belvedere ([\w-]+)", page, re.MULTILINE)
    assert sorted(documented) == sorted(get_command(app).commands)  # type: ignore[attr-defined]  # the program is a group


def test_every_metric_is_documented_and_no_other() -> None:
    from belvedere.status import Status, ViewInfo, prometheus
    from belvedere.table_status import CaptureInfo

    view = ViewInfo("v", "live", 1, 0, 0.0, 0, 0, 0, 0, 0)
    epoch = {
        "operations": 0,
        "changes": 0,
        "started": 0.0,
        "committed": 0.0,
        "seconds": {"read": 0.0},
    }
    capture = CaptureInfo("enabled", 0, 0.0, ())
    text = prometheus(Status("memory:", 1, 0, 0, "", (view,), (epoch,), (), capture))
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(belvedere_\w+)`", page)) == set(
        re.findall(r"^# TYPE (\w+)", text, re.MULTILINE)
    )


# ---------------------------------------------------------------- names


def exists(page: Path, name: str) -> bool:
    return name in MADE_BY_USERS or any(
        (folder / name).exists() for folder in (ROOT, page.parent, ROOT / "src" / "belvedere", DOCS)
    )


def test_every_file_that_a_document_names_is_there() -> None:
    named = [
        (page, name) for page in PAGES for name in PATH.findall(page.read_text(encoding="utf-8"))
    ]
    assert [f"{name_of(page)}: {name}" for page, name in named if not exists(page, name)] == []


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            target, _, anchor = link.partition("#")
            if "://" in link:
                continue
            file = (page.parent / target).resolve() if target else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{name_of(page)}: {link}")
    assert broken == []


@pytest.mark.parametrize("rule", range(1, 11))
def test_the_test_of_a_rule_that_its_page_names_is_there(rule: int) -> None:
    page = (DOCS / "rules.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^### R{rule}: .*\n((?:(?!#).*\n)+)", page, re.MULTILINE)
    held = " ".join(section.split()).partition("held by")[2]
    if f"`test_r{rule}_*`" in held:
        assert f"def test_r{rule}_" in (ROOT / "tests/simulation/test_rules.py").read_text(
            encoding="utf-8"
        )
    else:
        assert PATH.search(held)
