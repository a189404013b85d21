"""Print what `coverage json` wrote, a line per package: `python .ci/by_package.py lines.json`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any


def package_of(file: str) -> str:
    """`operators` for src/belvedere/operators/join.py; modules at the top are one line."""
    inside = PurePath(file).parts[PurePath(file).parts.index("belvedere") + 1 :]
    return inside[0] if len(inside) > 1 else "(top)"


def lines_by_package(files: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Per package the lines that can run, and those of them that did."""
    all_lines, run = Counter[str](), Counter[str]()
    for file, found in files.items():
        all_lines[package_of(file)] += found["summary"]["num_statements"]
        run[package_of(file)] += found["summary"]["covered_lines"]
    return {package: (all_lines[package], run[package]) for package in sorted(all_lines)}


def table(packages: Mapping[str, tuple[int, int]]) -> str:
    total = tuple(sum(column) for column in zip(*packages.values(), strict=True))
    rows = [*packages.items(), ("all", total)]
    return "\n".join(f"{name:14}{n:7,} lines {m / max(n, 1):7.1%} run" for name, (n, m) in rows)


if __name__ == "__main__":
    print(table(lines_by_package(json.loads(Path(sys.argv[1]).read_text())["files"])))
