"""Definitions that were stored before the operators had one contract are read, and written the same.

`stored/` has the bound nodes of some golden plans, as the catalog kept them then: together they have
every operator, and every kind, identity, function and total.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from belvedere.graph import from_json, to_json
from belvedere.operators.select import Select

FILES = sorted((Path(__file__).parent / "stored").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_stored_definition_is_read_and_written_as_it_was(file: Path) -> None:
    text = file.read_text(encoding="utf-8").rstrip("\n")
    assert json.dumps(to_json(from_json(json.loads(text)))) == text


def test_a_field_that_came_later_is_written_when_it_says_something() -> None:
    plain = Select(None, ())
    longer = Select(None, (), longest_key=32_000)
    assert "longest_key" not in to_json(plain)
    assert from_json(to_json(plain)) == plain
    assert from_json(to_json(longer)) == longer
