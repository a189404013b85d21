"""Print which lines tests ran, a line per package: `python .ci/by_package.py DIRECTORY`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path, PurePath
from typing import Any

import slipcover


def package_of(file: str) -> str:
    """`operators` for src/belvedere/operators/join.py; modules at the top are one line."""
    inside = PurePath(file).parts[PurePath(file).parts.index("belvedere") + 1 :]
    return inside[0] if len(inside) > 1 else "(top)"


def lines_by_package(files: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Per package the lines that can run, and those of them that did."""
    all_lines, run = Counter[str](), Counter[str]()
    for file, lines in files.items():
        package, executed = package_of(file), len(lines["executed_lines"])
        all_lines[package] += executed + len(lines["missing_lines"])
        run[package] += executed
    return {package: (all_lines[package], run[package]) for package in sorted(all_lines)}


def merged(paths: Iterable[Path]) -> Mapping[str, Any]:
    """The files of the source, with what any of the processes ran."""
    parts = (json.loads(path.read_text()) for path in paths)
    files: Mapping[str, Any] = reduce(slipcover.merge_coverage, parts)["files"]
    return files


def table(packages: Mapping[str, tuple[int, int]]) -> str:
    total = tuple(sum(column) for column in zip(*packages.values(), strict=True))
    rows = [*packages.items(), ("all", total)]
    return "\n".join(f"{name:14}{n:7,} lines {m / max(n, 1):7.1%} run" for name, (n, m) in rows)


if __name__ == "__main__":
    print(table(lines_by_package(merged(sorted(Path(sys.argv[1]).glob("*.json"))))))
