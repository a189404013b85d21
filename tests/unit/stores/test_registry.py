from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import belvedere
from belvedere.errors import StoreError
from belvedere.inspection import inspect
from belvedere.stores.embedded import EmbeddedStore
from belvedere.stores.memory import MemoryStore
from belvedere.stores.registry import exists, open_store

THEIRS = """
from belvedere.stores.memory import MemoryStore
from belvedere.stores.registry import Plugin

made = {}

def open_theirs(name, **options):
    store = made[name] = MemoryStore(**options)
    store.url = f"theirs:{name}"
    return store

plugin = Plugin(open_theirs, made.__contains__)
"""


def test_a_path_or_the_belvedere_scheme_opens_the_embedded_store(tmp_path: Path) -> None:
    for url in (str(tmp_path / "a"), f"belvedere:{tmp_path / 'a'}", f"BELVEDERE:{tmp_path / 'a'}"):
        store = open_store(url)
        assert isinstance(store, EmbeddedStore)
        assert store.url == f"belvedere:{tmp_path / 'a'}"
        store.close()


def test_options_go_to_the_store(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "a"), slots=3)
    assert store.state.slots == 3
    store.close()
    assert open_store("memory:", slots=5).state.slots == 5


def test_memory_opens_a_new_store_each_time() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)
    assert open_store("memory:") is not open_store("memory:")


def test_a_package_of_its_own_brings_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an entry point, which is looked up in real metadata on the path."""
    (tmp_path / "their_store.py").write_text(THEIRS)
    metadata = tmp_path / "their_store-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-store\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[belvedere.stores]\ntheirs = their_store:plugin\n")
    with pytest.raises(StoreError, match="packages to install"):
        open_store("theirs:x")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not exists("theirs:x")
    store = open_store("theirs:x", slots=2)
    assert store.url == "theirs:x"
    assert exists("THEIRS:x")
    with pytest.raises(StoreError, match=r"one of belvedere:, hbase:, memory:, .*theirs:"):
        open_store("others:x")


def test_a_store_is_found_without_being_made(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    assert not exists(path)
    assert not (tmp_path / "a").exists()
    open_store(path).close()
    assert exists(path)
    assert exists(f"belvedere:{path}")
    assert not exists("memory:")


@pytest.mark.parametrize(
    ("url", "hint"),
    [("ftp://host", "one of belvedere:"), ("belvedere:", "no path"), ("memory:/x", "no path")],
)
def test_other_urls_are_refused_with_a_hint(url: str, hint: str) -> None:
    with pytest.raises(StoreError, match=hint):
        open_store(url)


@pytest.mark.parametrize("name", ["caf\udce9", "a\0b"])
def test_paths_that_text_cannot_tell_are_refused_and_nothing_is_begun(
    tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / name)
    with belvedere.open(tmp_path / "db") as db:
        uses: list[Callable[[], object]] = [
            lambda: belvedere.open(path),
            lambda: exists(path),
            lambda: inspect(path),
            lambda: belvedere.compact(path),
            lambda: belvedere.restore(path, tmp_path / "new"),
            lambda: db.backup(path),
        ]
        for use in uses:
            with pytest.raises(StoreError, match="path"):
                use()
    assert [each.name for each in tmp_path.iterdir()] == ["db"]
