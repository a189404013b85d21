"""Which database a command works on, and that none is created by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from belvedere.stores import registry
from belvedere.stores.memory import MemoryStore
from tests.unit.cli.conftest import Cli


def test_a_mistyped_path_is_refused_and_nothing_is_created(cli: Cli, tmp_path: Path) -> None:
    result = cli("status", db=tmp_path / "typo")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert f"belvedere init {tmp_path / 'typo'}" in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "typo").exists()


def test_without_db_the_current_directory_must_be_a_database(
    filled: Cli, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "run belvedere init PATH" in filled("views", db=None).stderr
    monkeypatch.chdir(shop)
    assert filled("views", db=None).exit_code == 0


def test_the_environment_names_the_database_and_the_option_wins(
    filled: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELVEDERE_DB", str(shop))
    assert filled("views", db=None).exit_code == 0
    assert filled("views", "--db", str(shop / "elsewhere"), db=None).exit_code == 1


def test_db_is_understood_after_the_command_too(filled: Cli, shop: Path) -> None:
    assert filled("views", "--db", str(shop), db=None).exit_code == 0


def test_a_store_without_options_is_opened_by_its_url(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = registry.Plugin(open=lambda rest: MemoryStore(), exists=lambda rest: True)
    monkeypatch.setitem(registry._plugins, "room", room)
    assert cli("views", "--db", "room:kitchen", db=None).exit_code == 0


def test_init_refuses_a_database_and_a_directory_with_other_files(
    filled: Cli, shop: Path, tmp_path: Path
) -> None:
    assert "already" in filled("init", str(shop)).stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    result = filled("init", str(tmp_path / "full"))
    assert result.exit_code == 1
    assert "not empty" in result.stderr
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["notes.txt"]


def test_init_takes_the_number_of_slots(cli: Cli, tmp_path: Path) -> None:
    assert "3 slots" in cli("init", str(tmp_path / "new"), "--slots", "3").stdout
    assert cli("init", str(tmp_path / "other"), "--slots", "0").exit_code == 2


def test_the_demo_does_not_write_into_a_database_that_is_there(filled: Cli, shop: Path) -> None:
    assert "choose a new path" in filled("demo", str(shop)).stderr
