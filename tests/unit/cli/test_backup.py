"""backup, restore and compact as commands."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Cli

ROW = ("put", "readings", "place=a", "number=1", "total=5")


def said(text: str) -> str:
    return " ".join(text.split())


def test_a_backup_is_restored_as_it_was(filled: Cli, tmp_path: Path) -> None:
    assert filled(*ROW).exit_code == 0
    done = filled("backup", str(tmp_path / "b"))
    assert done.exit_code == 0, done.output
    assert f"backed up to {tmp_path / 'b'}:" in said(done.stdout)
    assert filled("delete", "readings", "a", "1").exit_code == 0
    restored = filled("restore", str(tmp_path / "b"), str(tmp_path / "r"), db=None)
    assert restored.exit_code == 0, restored.output
    row = filled("get", "readings", "a", "1", "--json", db=tmp_path / "r")
    assert json.loads(row.stdout)["total"] == 5
    assert filled("get", "readings", "a", "1").exit_code == 1


def test_the_command_that_comes_next_can_be_pasted(filled: Cli, tmp_path: Path) -> None:
    folder, made = str(tmp_path / "my b's"), str(tmp_path / "new $x")
    for command in (("backup", folder), ("restore", folder, made), ("init", made + " 2")):
        _, _, next_one = filled(*command).stdout.strip().partition("; next: ")
        words = shlex.split(next_one)
        assert words[0] == "belvedere"
        assert command[-1] in words


@pytest.mark.parametrize("options", [(), ("--read-only",)])
def test_backups_say_what_they_cost_as_json(
    filled: Cli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    found = json.loads(filled(*options, "backup", str(tmp_path / "b"), "--json").stdout)
    assert found["path"] == str(tmp_path / "b")
    assert found["files"] == 5  # environments of catalog, base and two slots, and the log
    assert found["bytes"] == found["copied_bytes"] > 0
    later = ("backup", str(tmp_path / "b2"), "--base", str(tmp_path / "b"))
    assert filled(*options, *later).exit_code == 0


def test_compact_says_how_much_was_given_back(filled: Cli, shop: Path) -> None:
    for _ in range(20):
        assert filled(*ROW).exit_code == 0
    assert " given back: " in said(filled("compact").stdout)
    found = json.loads(filled("compact", "--json").stdout)
    assert found["given_back"] == found["before"] - found["after"] >= 0
    refused = filled("--read-only", "compact")
    assert refused.exit_code == 1
    assert "leave out --read-only" in said(refused.stderr)


def test_wrong_directories_are_refused_in_one_line(filled: Cli, shop: Path, tmp_path: Path) -> None:
    b, r = str(tmp_path / "b"), str(tmp_path / "r")
    assert filled("backup", b).exit_code == 0
    cases = {
        ("backup", b): "is, or is inside of, a database or a backup",
        ("backup", str(shop / "b")): "is, or is inside of, a database or a backup",
        ("backup", r, "--base", str(shop)): "is not a backup",
        ("restore", str(shop), r): "is not a backup",
        ("restore", b, str(shop)): "is, or is inside of, a database or a backup",
    }
    for arguments, why in cases.items():
        result = filled(*arguments, db=None if arguments[0] == "restore" else shop)
        assert result.exit_code == 1, arguments
        assert why in said(result.stderr), arguments
        assert not Path(r).exists()
    for command in ("status", "compact", "backup"):
        arguments = (command, r) if command == "backup" else (command,)
        result = filled(*arguments, db=tmp_path / "b")
        assert result.exit_code == 1
        assert "is a backup: make a database of it with belvedere restore" in said(result.stderr)
    result = filled("init", b, db=None)
    assert "is a backup" in said(result.stderr)
