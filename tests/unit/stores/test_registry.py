from __future__ import annotations

from pathlib import Path

import pytest

from belvedere.errors import StoreError
from belvedere.stores.embedded import EmbeddedStore
from belvedere.stores.memory import MemoryStore
from belvedere.stores.registry import open_store


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


@pytest.mark.parametrize("url", ["hbase://host:2181/ns", "cassandra://host/keyspace"])
def test_stores_that_are_not_there_yet_say_so(url: str) -> None:
    with pytest.raises(StoreError, match="not there yet"):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "hint"),
    [("ftp://host", "one of belvedere:"), ("belvedere:", "no path"), ("memory:/x", "no path")],
)
def test_other_urls_are_refused_with_a_hint(url: str, hint: str) -> None:
    with pytest.raises(StoreError, match=hint):
        open_store(url)
