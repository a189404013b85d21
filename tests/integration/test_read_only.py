"""Stores that are only read: by wish, on a read-only mount, without rights; beside writers of other
processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import BelvedereError, StoreError
from belvedere.stores.embedded import EmbeddedStore, layout, reading

NOBODY = 65534


@pytest.fixture
def path() -> Iterator[Path]:
    """A database in a directory that every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    with belvedere.open(folder / "db", slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        db.sql("CREATE TABLE n (id INT PRIMARY KEY, v INT) WITH (before_images = false)")
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v")
        for table in ("t", "n"):
            db.table(table).put_many([{"id": i, "v": i % 3} for i in range(30)])
        db.catch_up()
        db.table("t").put({"id": 30, "v": 0})  # which the view does not have yet
    yield folder / "db"
    shutil.rmtree(folder)


def files_of(path: Path) -> dict[Path, bytes]:
    return {
        file: file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name not in ("lock.mdb", "holder")
    }


def check_reads(db: Database) -> None:
    assert db.store.read_only
    assert db.table("t").get(7) == {"id": 7, "v": 1}
    assert len(list(db.table("t").scan())) == 31
    view = db.view("w")
    assert (view.get(0), view.get(9)) == ({"v": 0, "n": 10}, None)
    assert [row["n"] for row in view.scan()] == [10, 10, 10]
    assert (len(view), view.problems()) == (3, [])
    assert db.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 31}]
    assert db.sql(
        "SELECT sum(w.n) AS n, count(t.id) AS m FROM w JOIN t ON w.v = t.v"
    ).to_pylist() == [{"n": 300, "m": 30}]
    assert db.sql("SELECT count(*) AS n FROM w JOIN n ON w.v = n.v").to_pylist() == [{"n": 30}]
    status = db.status()
    assert (status.committed, status.written, status.views[0].state) == (60, 61, "live")
    assert "CREATE TABLE" in str(db.sql("SHOW CREATE TABLE t"))
    with db.session(timeout=0) as session:
        assert len(session.view("w")) == 3


def refusals(db: Database) -> set[str]:
    """What every way to write says."""
    row = {"id": 1, "v": 1}
    table = db.table("t")
    writes: list[Callable[[], Any]] = [
        lambda: table.put(row),
        lambda: table.put_many([row]),
        lambda: table.delete(1),
        lambda: db.sql("DELETE FROM t"),
        lambda: db.sql("CREATE TABLE u (id INT PRIMARY KEY)"),
        lambda: db.sql("DROP TABLE n"),
        lambda: db.sql("DROP MATERIALIZED VIEW w"),
        lambda: db.catch_up(),
    ]
    said = set()
    for write in writes:
        with pytest.raises(StoreError) as caught:
            write()
        said.add(str(caught.value))
    return said


def test_a_store_is_read_only_by_wish(path: Path) -> None:
    before = files_of(path)
    with belvedere.open(path, read_only=True) as db:
        check_reads(db)
        assert refusals(db) == {f"nothing can be written: {path} was opened with read_only"}
    assert files_of(path) == before


def test_one_process_may_write_a_store_and_have_it_read_only_too_but_not_the_other_way_round(
    path: Path,
) -> None:
    with belvedere.open(path) as writer, belvedere.open(path, read_only=True) as reader:
        check_reads(reader)
        writer.table("t").put({"id": 99, "v": 99})
        assert reader.table("t").get(99) == {"id": 99, "v": 99}
        assert len(refusals(reader)) == 1
    with (
        belvedere.open(path, read_only=True),
        pytest.raises(StoreError, match="to be read only: close it there first"),
    ):
        belvedere.open(path)
    belvedere.open(path).close()


def test_nothing_is_made_to_be_read_only(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="none is made: check the path"):
        belvedere.open(tmp_path / "no", read_only=True)
    assert not (tmp_path / "no").exists()
    with pytest.raises(StoreError, match="use True or False"):
        belvedere.open(tmp_path / "no", read_only="yes")


def test_a_store_of_an_older_format_is_refused_and_not_changed(path: Path) -> None:
    (path / "format.json").write_text('{"belvedere": "embedded store", "format": 2, "slots": 2}')
    before = files_of(path)
    with pytest.raises(StoreError, match="opened to be written: do that once"):
        belvedere.open(path, read_only=True)
    assert files_of(path) == before


# ---------------------------------------------------------------- mounts and rights


@pytest.fixture
def mounted(path: Path) -> Iterator[Path]:
    """The same directory at another place, where the file system is read-only."""
    place = path.parent / "mount"
    place.mkdir()
    if (
        os.geteuid()
        or subprocess.run(
            ["mount", "--bind", path, place], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("this machine allows no mounts")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        yield place
    finally:
        # lazily: whoever walks over all mounts just now would make it busy
        subprocess.run(["umount", "--lazy", place], check=True)


def test_a_store_on_a_read_only_mount_is_read(mounted: Path) -> None:
    with belvedere.open(mounted) as db:
        check_reads(db)
        assert refusals(db) == {f"nothing can be written: {mounted} is on a read-only mount"}
    with belvedere.open(mounted, read_only=True) as db:
        check_reads(db)


def as_nobody(body: Callable[[], None]) -> str:
    """What a function raises in a process without rights, "" if nothing."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            body()
        except BaseException as error:  # to be shown by the parent
            said = f"{type(error).__name__}: {error}"
        os.write(tell, said.encode())
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        said = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return said


def without_rights(path: Path) -> None:
    for place in [path, *path.rglob("*")]:
        place.chmod(0o755 if place.is_dir() else 0o644)


def test_a_store_without_rights_to_write_is_read(path: Path) -> None:
    without_rights(path)

    def body() -> None:
        with belvedere.open(path) as db:
            check_reads(db)
            assert refusals(db) == {
                "nothing can be written: there is no right to write"
                f" {path / 'catalog' / 'data.mdb'}"
            }

    assert as_nobody(body) == ""


def test_a_store_without_rights_to_read_says_so(path: Path) -> None:
    without_rights(path)
    (path / "base" / "data.mdb").chmod(0o600)
    assert "StoreError" in (said := as_nobody(lambda: belvedere.open(path).close()))
    assert "base/data.mdb cannot be read: Permission denied. Check its rights" in said
    path.chmod(0o700)
    assert "cannot be opened as a store: Permission denied" in as_nobody(
        lambda: belvedere.open(path).close()
    )


def test_a_store_whose_lock_files_may_be_written_is_read_beside_a_writer_with_protection(
    path: Path,
) -> None:
    without_rights(path)
    for lock in path.rglob("lock.mdb"):
        lock.chmod(0o666)

    def body() -> None:
        with belvedere.open(path) as db:
            check_reads(db)
            kinds = {type(each) for each in db.store._environments}  # type: ignore[attr-defined]
            assert kinds == {reading.ReadingEnvironment}

    assert as_nobody(body) == ""


# ---------------------------------------------------------------- beside a writer, without a lock file

_WRITER = """
import sys, pyarrow as pa
from belvedere.stores.embedded import EmbeddedStore
store, n = EmbeddedStore.open(sys.argv[1]), 0
while True:
    n += 1
    keys = [b"%03d" % i for i in range(n % 3, 300, 3)]
    end = store.base.write(1, pa.array([b"000", *keys], pa.binary()), pa.array([b"%d" % n] * (len(keys) + 1), pa.binary()), True)
    store.base.trim("log", end["log"])
    print(n, flush=True)
"""


def test_what_is_read_without_a_lock_file_beside_a_writer_is_right_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every transaction writes the same number everywhere in a third of the rows, so that what is
    mixed shows.
    """
    with EmbeddedStore.open(tmp_path / "s", slots=1) as store:
        keys = pa.array([b"%03d" % i for i in range(300)], pa.binary())
        store.base.write(1, keys, pa.array([b"0"] * 300, pa.binary()), True)
    monkeypatch.setattr(reading, "kind_of", lambda _: reading.UnlockedEnvironment)
    command = [sys.executable, "-c", _WRITER, str(tmp_path / "s")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        right, refused = 0, 0
        with EmbeddedStore.open(tmp_path / "s", read_only=True) as store:
            while right < 300:
                try:
                    with store.base.snapshot() as snapshot:
                        found = dict(
                            zip(
                                *(column.to_pylist() for column in next(snapshot.scan(1))),
                                strict=True,
                            )
                        )
                        if right % 3:  # time for the writer to overtake
                            [writer.stdout.readline() for _ in range(right % 7)]
                            assert snapshot.get_many(1, keys).to_pylist() == [
                                found[key] for key in keys.to_pylist()
                            ]
                    store.base.end()
                except BelvedereError as error:
                    assert "was written while it was read" in str(error)  # noqa: PT017  # the other outcome
                    refused += 1
                    right += 1
                    continue
                newest = max(map(int, found.values()))
                third = {int(found[b"%03d" % i]) for i in range(newest % 3 or 3, 300, 3)}
                assert third == {newest}
                right += 1
        writer.kill()
    assert refused < 300


def test_reads_of_views_without_a_lock_file_follow_epochs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with belvedere.open(path) as db:
        db._runner = LocalRunner(db.store)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)
        }
        code = "import sys\nimport belvedere\ndb = belvedere.open(sys.argv[1], read_only=True)\n"
        code += "from belvedere.stores.embedded import reading\n"
        code += (
            "for line in sys.stdin:\n    print(db.view('w').get(int(line)),"
            " len(list(db.view('w').scan())), flush=True)\n"
        )
        code = (
            "from belvedere.stores.embedded import reading\nreading.kind_of = lambda _:"
            " reading.UnlockedEnvironment\n" + code
        )
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            for i in range(3, 15):
                db.table("t").put({"id": 100 + i, "v": i})
                db.catch_up()
                child.stdin.write(f"{i}\n")
                child.stdin.flush()
                assert child.stdout.readline().strip() == f"{{'v': {i}, 'n': 1}} {i + 1}"
            child.stdin.close()


def test_the_command_line_reads_only(path: Path) -> None:
    from typer.testing import CliRunner

    from belvedere.cli.app import app

    before = files_of(path)
    for arguments in (
        ["--db", str(path), "--read-only", "get", "t", "7"],
        ["get", "t", "7", "--db", str(path), "--read-only"],
    ):
        assert "7" in CliRunner().invoke(app, arguments).output
    refused = CliRunner().invoke(app, ["--db", str(path), "--read-only", "put", "t", "id=1", "v=2"])
    assert (refused.exit_code, "nothing can be written" in refused.output) == (1, True)
    assert CliRunner().invoke(app, ["--db", str(path), "--read-only", "status"]).exit_code == 0
    assert files_of(path) == before
    assert layout.read_format(path).version == layout.FORMAT
