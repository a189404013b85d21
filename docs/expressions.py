"""Writes the table of expressions in sql.md from the
allow-list itself: python docs/expressions.py
"""

from __future__ import annotations

from pathlib import Path

from belvedere.expressions import SUPPORTED

PAGE = Path(__file__).with_name("sql.md")
BEGIN, END = "<!-- expressions: begin -->\n", "<!-- expressions: end -->\n"
SHOWN = 4


def table() -> str:
    lines = ["| construct | examples | note |", "| --- | --- | --- |"]
    for row in SUPPORTED:
        examples = ", ".join(f"`{_cell(e)}`" for e in row.examples[:SHOWN])
        lines.append(f"| {_cell(row.construct)} | {examples} | {_cell(row.note)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """The page with the part between the marks replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + table() + "\n" + END + after


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
