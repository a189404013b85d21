"""House rules that a machine can hold: sizes, layers, reasons beside broad handlers, nothing of one
machine in the tree.
"""

from __future__ import annotations

import ast
import importlib
import io
import os
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "belvedere"

MODULE_LINES = 520
FUNCTION_LINES = 80

# A line may import itself and the lines above it. A name is a module or a package of belvedere;
# a dotted one, such as `expressions.rules`, places a part of a package apart from the rest.
LAYERS: list[set[str]] = [
    {"errors", "types", "processes", "libraries", "waiting"},
    {"encoding"},
    {"input", "changes"},
    {"expressions", "evaluation"},
    {"operators"},
    {"graph"},
    {"sql"},
    {"explain"},
    {"catalog", "readers"},
    {"why"},
    {"epochs", "spark", "capture", "warehouse"},
    {"cli", "server"},
]
# These stand beside the layers and import nothing of belvedere but what is listed.
PLUGINS: dict[str, set[str]] = {
    "stores": {"errors", "types", "processes", "libraries", "waiting", "encoding", "input"},
    "sources": {"errors", "types", "processes", "libraries", "waiting", "encoding", "input"},
    "consistency": {"errors", "types"},
}
# What the layers see of the plug-ins: the contract and the loader, from `changes` upwards.
CONTRACTS = {"stores", "stores.base", "sources", "sources.base"}
BELOW_CONTRACTS = {"errors", "types", "processes", "libraries", "waiting", "encoding", "input"}
# Packages that may import everything and that no layer but the last imports. So may all other
# modules directly in belvedere.
FREE = {"bench", "cost", "statements"}

# Spark 4.3 asks for pandas in these, although no pandas is needed to run Arrow tasks; pandas is not
# a dependency of ours.
NEEDS_PANDAS = {
    "mapInArrow",
    "mapInPandas",
    "applyInArrow",
    "applyInPandas",
    "toPandas",
    "pandas_udf",
}


@cache
def python_files(*folders: str) -> tuple[Path, ...]:
    return tuple(sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{line}"


def none_of(found: Iterable[str], rule: str) -> None:
    lines = sorted(found)
    assert not lines, "\n  ".join([rule, *lines])


# ---------------------------------------------------------------- sizes


def test_a_module_is_not_too_long() -> None:
    sizes = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files("src")
    }
    large = [
        f"{place(path, 1)} has {lines} lines"
        for path, lines in sizes.items()
        if lines > MODULE_LINES
    ]
    none_of(large, "is there more than one idea inside?")


def test_a_function_is_not_too_long() -> None:
    found = []
    for path in python_files("src"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    found.append(f"{place(path, node.lineno)} {node.name} has {lines} lines")
    none_of(found, "a long function hides its steps")


# ---------------------------------------------------------------- layers


def module_name(path: Path) -> str:
    """`operators.join` for src/belvedere/operators/join.py, `operators` for its package, "" for
    belvedere itself.
    """
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    return {module_name(path): path for path in python_files("src") if path.is_relative_to(PACKAGE)}


def imports(name: str) -> Iterator[tuple[str, int]]:
    """The modules of belvedere that a module imports anywhere in its text, each with its line."""
    path = modules()[name]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = [f"{absolute(name, path, node)}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            if target == "belvedere" or target.startswith("belvedere."):
                yield existing(target.removeprefix("belvedere").removeprefix(".")), node.lineno


def absolute(name: str, path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    here = ["belvedere", *filter(None, name.split("."))]
    up = node.level - (path.name == "__init__.py")
    return ".".join([*here[: len(here) - up], *filter(None, [node.module])])


def existing(target: str) -> str:
    """`errors.SchemaError` names something inside the module `errors`; "" is belvedere itself."""
    while target and target not in modules() and not (PACKAGE / target.replace(".", "/")).is_dir():
        target = target.rpartition(".")[0]
    return target


def room(name: str) -> str:
    return name.partition(".")[0]


def rank(name: str) -> int | None:
    """The line of LAYERS that names the module, or else the nearest package around it."""
    while name:
        for number, layer in enumerate(LAYERS):
            if name in layer:
                return number
        name = name.rpartition(".")[0]
    return None


def is_free(name: str) -> bool:
    if name == "" or room(name) in FREE:
        return True
    return rank(name) is None and room(name) not in PLUGINS and not (PACKAGE / room(name)).is_dir()


def may_import(name: str, target: str) -> bool:
    if is_free(name):
        return True
    if room(name) in PLUGINS:
        return room(target) in PLUGINS[room(name)] | {room(name)}
    own, other = rank(name), rank(target)
    if own is None:
        return False
    if other is not None:
        return other <= own
    if target in CONTRACTS:
        return room(name) not in BELOW_CONTRACTS
    return own == len(LAYERS) - 1


def test_every_package_has_a_place_among_the_layers() -> None:
    known = set().union(*LAYERS, PLUGINS, FREE)
    packages = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    none_of(
        packages - {room(name) for name in known},
        "name the layer of these packages at the top of this file",
    )


def test_imports_go_one_way() -> None:
    found = []
    for name, path in modules().items():
        for target, line in imports(name):
            if not may_import(name, target):
                found.append(f"{place(path, line)} imports belvedere.{target}".rstrip("."))
    none_of(found, "see LAYERS at the top of this file")


def test_the_rule_of_layers_bites() -> None:
    assert may_import("operators.join", "errors")
    assert may_import("operators.join", "operators.map")
    assert may_import("epochs.intents", "stores.base")
    assert may_import("cli.demo", "")
    assert not may_import("operators.join", "epochs")
    assert not may_import("operators.join", "stores.embedded")
    assert not may_import("encoding", "stores.base")
    assert not may_import("stores.embedded", "catalog.state")
    assert not may_import("consistency.levels", "changes")
    assert not may_import("types", "")


# ---------------------------------------------------------------- code


def test_nothing_needs_pandas() -> None:
    found = []
    for path in python_files("src"):
        for node in ast.walk(tree_of(path)):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in NEEDS_PANDAS
                and not through_jvm(node)
            ):
                found.append(f"{place(path, node.lineno)} {node.attr}")
            if isinstance(node, ast.Import | ast.ImportFrom) and imports_pandas(node):
                found.append(f"{place(path, node.lineno)} import")
    none_of(found, "pandas is not a dependency")


def through_jvm(node: ast.Attribute) -> bool:
    """`frame._jdf.mapInArrow` goes past the check."""
    return isinstance(node.value, ast.Attribute) and node.value.attr == "_jdf"


def imports_pandas(node: ast.Import | ast.ImportFrom) -> bool:
    names = (
        [node.module or ""]
        if isinstance(node, ast.ImportFrom)
        else [alias.name for alias in node.names]
    )
    return any(name.split(".")[0] == "pandas" for name in names) or any(
        alias.name in NEEDS_PANDAS for alias in node.names
    )


def test_nobody_waits_by_sleeping() -> None:
    """Waiting for a condition, or a settable clock, is faster and does not
    fail on a slow machine.
    """
    found = []
    for path in python_files("src", "tests"):
        for node in ast.walk(tree_of(path)):
            if (isinstance(node, ast.Attribute) and ast.unparse(node) == "time.sleep") or (
                isinstance(node, ast.ImportFrom)
                and node.module == "time"
                and any(alias.name == "sleep" for alias in node.names)
            ):
                found.append(place(path, node.lineno))
    none_of(found, "wait for a condition instead")


def operator_classes() -> set[str]:
    """The operators; their roles are in operators/base.py, and may be asked for."""
    found = set()
    for path in (PACKAGE / "operators").rglob("*.py"):
        if path.name != "base.py":
            found |= {
                node.name
                for node in ast.walk(tree_of(path))
                if isinstance(node, ast.ClassDef)
                and {ast.unparse(base) for base in node.bases} & ROLES
            }
    return found


ROLES = {"Operator", "Stateless", "Stateful", "ViewTable", "Origin", "Derived"}


def asked_classes(node: ast.AST) -> Iterator[str]:
    """The names that a type test, or a case of a match, asks for."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
        yield from (name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name))
    if isinstance(node, ast.MatchClass):
        yield ast.unparse(node.cls)


def test_the_engine_asks_for_roles_of_operators_not_for_classes() -> None:
    """What an operator does is said in its own file; `cost/rules.py` adds rules by class, openly."""
    classes = operator_classes()
    assert {"Source", "Select", "Join", "Aggregate", "KeyedSink"} <= classes
    found = []
    for path in python_files("src"):
        if path.is_relative_to(PACKAGE / "operators"):
            continue
        for node in ast.walk(tree_of(path)):
            for name in set(asked_classes(node)) & classes:
                found.append(f"{place(path, node.lineno)} asks for {name}")  # type: ignore[attr-defined]  # calls and cases have it
    none_of(found, "put the answer into the operator (operators/base.py)")


CATALOG_KEY = re.compile(
    r"(?:name|table|view|status|errors|commit|pin|garbage|dropped|repair|source|condition)/\Z|(?:lease|intent|next_id)\Z"
)


def test_only_the_layout_knows_the_keys_of_the_catalog() -> None:
    found = []
    for path in python_files("src"):
        if path.name == "layout.py" or "bench" in path.parts:
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                ("t.get", "t.put", "t.delete", "t.scan", "catalog.get_one")
            ):
                texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
                if any(isinstance(text, str) and CATALOG_KEY.match(text) for text in texts):
                    found.append(place(path, node.lineno))
    none_of(found, "use an accessor of catalog/layout.py")


def is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))
        for kind in kinds
    )


def reasons(path: Path) -> set[int]:
    """The lines with a comment that says something to a reader, not only to a tool."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    comments = (
        (token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT
    )
    return {
        line
        for line, text in comments
        if re.sub(r"#\s*(noqa|type:|pragma:)[^#]*|#", "", text).strip()
    }


def test_a_broad_except_gives_its_reason_in_a_comment() -> None:
    """On its own line, or on the one after it."""
    found = []
    for path in python_files("src", "tests"):
        broad = [
            node
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.ExceptHandler) and is_broad(node)
        ]
        given = reasons(path) if broad else set()
        found += [
            place(path, node.lineno) for node in broad if not given & {node.lineno, node.lineno + 1}
        ]
    none_of(found, "say why everything is caught")


def test_every_public_name_exists() -> None:
    belvedere = importlib.import_module("belvedere")
    names = getattr(belvedere, "__all__", [])
    none_of(
        [name for name in names if not hasattr(belvedere, name)],
        "in belvedere.__all__, but not there",
    )
    assert len(set(names)) == len(names)


# ---------------------------------------------------------------- files

MACHINE_PATH = re.compile(r"(?<![\w.$~*}\])-])/(?:work|farm|root|home|Users)/[\w.-]")
REGISTRY = re.compile(
    r"(?i)https?://[^\s\"'<>)]*(?:pypi|pythonhosted|/simple\b|repo\d*\.maven|maven\.org|sonatype|artifactory|nexus|npmjs|crates\.io)"
    r"|--(?:extra-)?index-url[ =]|--find-links[ =]"
)
SKIPPED_SUFFIXES = {".png", ".svg", ".gif", ".jpg", ".pdf", ".jar", ".parquet", ".arrow", ".pyc"}


def ignored_names() -> set[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    return {line.strip().strip("/") for line in lines if line.strip() and not line.startswith("#")}


def kept_files() -> Iterator[Path]:
    """What a checkout holds: the tree without what .gitignore names."""
    ignored = ignored_names() | {".git"}
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [
            name for name in folders if name not in ignored and not name.endswith(".egg-info")
        ]
        yield from (
            Path(folder, name)
            for name in files
            if name not in ignored and Path(name).suffix not in SKIPPED_SUFFIXES
        )


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in kept_files():
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        ):
            if pattern.search(line):
                found.append(f"{place(path, number)} {line.strip()[:120]}")
    return found


def test_no_file_names_a_path_of_one_machine() -> None:
    none_of(lines_with(MACHINE_PATH), "these lines are true on one machine only")


def test_no_file_names_the_address_of_a_registry() -> None:
    none_of(lines_with(REGISTRY), "where packages come from is the user's choice")


def test_the_search_for_paths_and_addresses_bites() -> None:
    folder, host = "work", "pypi"
    assert MACHINE_PATH.search(f"cd /{folder}/main")
    assert MACHINE_PATH.search(f'Path("/{folder}/x")')
    assert not MACHINE_PATH.search(f"docs/{folder}/main and ./{folder}/x")
    assert REGISTRY.search(f"https://{host}.org/project")
    assert REGISTRY.search("pip install --" + "index-url x")
    assert not REGISTRY.search("uv pip compile --no-emit-index-url")


def test_the_lock_has_hashes_and_no_addresses() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
    assert len(pins) > 10
    none_of(
        [pin.splitlines()[0] for pin in pins if "==" not in pin or "--hash=sha256:" not in pin],
        "not pinned by a hash",
    )
    assert "://" not in text
