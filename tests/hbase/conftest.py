"""One HBase for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.stores.hbase.local import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("hbase"))
    made.up()
    yield made
    made.down()
