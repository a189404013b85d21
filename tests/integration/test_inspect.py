"""`inspect`: what is damaged is named with its table and keys, and what helps does help."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import belvedere
from belvedere.cli.app import app
from belvedere.errors import BelvedereError, Damaged, PipelineError, StoreError
from belvedere.inspection import Inspection, inspect
from belvedere.stores.embedded import checked, run_lists
from tests.formats.test_formats import KEPT, unpacked
from tests.integration.damages import Made, answers, make, opened


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("inspected"))


@pytest.fixture
def path(made: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.db, tmp_path / "db"))


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 4
    file.write_bytes(data)


def newest_run(path: Path) -> Path:
    return max(path.glob("slots/*/*.run"))


def change(folder: Path, key: bytes, value: bytes | None) -> None:
    """Write an entry past the store; None removes it."""
    with (
        lmdb.open(str(folder), map_size=1 << 26) as environment,
        environment.begin(write=True) as transaction,
    ):
        if value is None:
            assert transaction.delete(key)
        else:
            transaction.put(key, value)


def keys(folder: Path, start: bytes) -> list[bytes]:
    with lmdb.open(str(folder), map_size=1 << 26) as environment, environment.begin() as t:
        return [key for key, _ in t.cursor() if key.startswith(start)]


def flip_sections(folder: Path, chosen: Callable[[int], bool]) -> None:
    """A bit in each small section of some tables."""
    with lmdb.open(str(folder), map_size=1 << 26) as environment, environment.begin() as t:
        sections = [item for item in t.cursor() if item[0].startswith(run_lists.SECTION)]
    for key, value in sections:
        if chosen(int.from_bytes(value[4:8], "little")):
            change(folder, key, value[:100] + bytes([value[100] ^ 1]) + value[101:])


def whats(found: Inspection) -> list[str]:
    return [finding.what for finding in found.findings]


def test_nothing_is_said_of_a_database_that_is_whole(path: Path) -> None:
    found = inspect(path)
    assert found.ok
    assert [part.name for part in found.parts] == [
        "format.json",
        "catalog",
        "base",
        "slots/000",
        "slots/001",
    ]
    assert all(part.sections and part.records for part in found.parts[3:])
    assert found.parts[2].log_blocks
    with opened(path) as db:
        assert db.inspect() == found


def test_a_damaged_run_is_named_with_its_view_and_built_anew(made: Made, path: Path) -> None:
    flip(newest_run(path), 5000)
    with opened(path) as db:
        with pytest.raises(Damaged, match=r"\.run is damaged"):
            db.catch_up()
        found = db.inspect()
        (finding,) = found.findings
        assert finding.file == str(newest_run(path))
        assert finding.concerns.startswith(("view ", "an auxiliary view of "))
        assert finding.keys == "of any kind"  # the run is one section
        assert finding.remedy == f"belvedere rebuild {' '.join(finding.views)}"
        assert set(db.rebuild(*found.rebuildable)) >= set(finding.views)
        db.catch_up()
        assert answers(db) == made.then
        assert db.inspect().ok


@pytest.mark.slow
def test_a_view_that_cannot_be_read_is_not_verified_and_what_helps_is_said(
    made: Made, path: Path, spark: SparkSession
) -> None:
    with opened(path) as db:
        db.catch_up()
        table = db.state().view("totals").planned.sink.table
    for slot in ("000", "001"):
        flip_sections(path / "slots" / slot, lambda number: number == table)
    with belvedere.open(path, spark=spark) as db:
        for call in (db.verify, db.repair):
            with pytest.raises(PipelineError, match="belvedere rebuild totals builds it anew"):
                call("totals")
        db.rebuild("totals")
        db.catch_up()
        assert db.verify("totals").ok


@pytest.mark.parametrize("slot", ["000", "001"])
def test_whatever_section_is_damaged_the_views_that_it_belongs_to_can_be_built_anew(
    made: Made, path: Path, slot: str
) -> None:
    """All small sections of a slot at once; those of delta views cannot be made anew."""
    folder = path / "slots" / slot
    with opened(path) as db:
        deltas = {table.delta for table in db.state().tables.values()}
    flip_sections(folder, lambda table: table not in deltas)
    with opened(path) as db:
        found = db.inspect()
        assert len(found.findings) > 10
        assert all(finding.views for finding in found.findings)
        db.rebuild(*found.rebuildable)
        db.catch_up()
        assert answers(db) == made.then
        assert db.inspect().ok


def test_a_view_is_built_anew_with_all_that_share_with_it(path: Path) -> None:
    """`rich` reads `totals`."""
    with opened(path) as db:
        before = {name: view.id for name, view in db.state().views.items()}
        assert db.rebuild("totals") == ("rich", "totals")
        after = {name: view.id for name, view in db.state().views.items()}
        assert {name for name in before if after[name] != before[name]} == {"rich", "totals"}
        with pytest.raises(BelvedereError, match="there is no view nothing"):
            db.rebuild("nothing")


def test_a_lost_segment_of_the_log_is_told(path: Path) -> None:
    for segment in (path / "base" / "log").glob("*.log"):
        segment.unlink()
    found = inspect(path)
    assert any("the log ends at" in what for what in whats(found))
    assert found.findings[0].remedy == "restore the whole directory from one backup"


def test_a_value_under_another_key_is_damage(path: Path) -> None:
    """Each is what somebody wrote, but not there."""
    folder = path / "slots" / "000"
    first, second = keys(folder, run_lists.LIST)[:2]
    with lmdb.open(str(folder), map_size=1 << 26) as environment, environment.begin() as t:
        value = t.get(first)
    change(folder, second, value)
    (finding,) = inspect(path).findings
    assert finding.what == f"{checked.describe(second)} is not what was written"
    with pytest.raises(Damaged, match="is not what was written"):
        opened(path)


def test_a_database_that_cannot_be_opened_is_inspected(path: Path) -> None:
    flip(path / "format.json", 30)
    (path / "slots" / "000" / "data.mdb").write_bytes(b"")
    with pytest.raises(StoreError):
        opened(path)
    found = inspect(path)
    assert {finding.part for finding in found.findings} == {"format.json", "slots/000"}


def test_parts_of_different_times_are_damage(made: Made, path: Path) -> None:
    shutil.rmtree(path / "base")
    shutil.copytree(made.folder / "after-2" / "base", path / "base")
    (finding,) = inspect(path).findings
    assert "are not from one time" in finding.what


def test_files_that_nothing_names_are_told_and_no_damage(path: Path) -> None:
    (path / "slots" / "001" / "000000000099-left.run").write_bytes(b"begun")
    found = inspect(path)
    assert found.ok
    assert found.parts[-1].unnamed == ("000000000099-left.run",)


def test_the_command_says_what_is_damaged_and_fails(path: Path) -> None:
    run = CliRunner().invoke
    assert run(app, ["--db", str(path), "inspect"]).exit_code == 0
    flip(newest_run(path), 5000)
    failed = run(app, ["--db", str(path), "inspect"])
    assert failed.exit_code == 1
    assert "what helps: belvedere rebuild " in failed.output
    listed = json.loads(run(app, ["--db", str(path), "inspect", "--json"]).stdout)
    assert not listed["ok"]
    assert listed["damaged"][0]["file"] == str(newest_run(path))


def test_an_older_format_is_brought_to_this_one_first(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="older formats have no checksums"):
        inspect(unpacked(KEPT[-1], tmp_path / "db"))


def test_what_is_no_database_is_not_called_a_damaged_one(path: Path, tmp_path: Path) -> None:
    with opened(path) as db:
        db.backup(tmp_path / "b")
    (tmp_path / "other").mkdir()
    for folder, what in (("b", "is a backup"), ("other", "is not a Belvedere database")):
        failed = CliRunner().invoke(app, ["--db", str(tmp_path / folder), "inspect"])
        assert failed.exit_code == 1
        assert what in " ".join(failed.output.split())


def test_stores_without_files_of_ours_are_not_inspected() -> None:
    with pytest.raises(StoreError, match="keeps no files of ours"):
        inspect("memory:")


def _work(path: Path, begun: Any, epochs: int) -> None:
    with opened(path) as db:
        for number in range(epochs):
            db.table("orders").put_many(
                [{"id": f"o{i}", "region": "r1", "amount": number} for i in range(300)]
            )
            db.catch_up()
            begun.set()


def test_a_database_that_others_write_is_whole(path: Path) -> None:
    """Files are merged away and pages used again meanwhile."""
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    worker = context.Process(target=_work, args=(path, begun, 25))
    worker.start()
    begun.wait(60)
    found = []
    while worker.is_alive():
        found.append(inspect(path))
    worker.join()
    assert worker.exitcode == 0
    assert found
    assert all(each.ok for each in found), [whats(each) for each in found]
    assert os.path.realpath(path) == found[0].path
