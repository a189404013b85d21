"""One HBase for all tests of this directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from belvedere.stores.hbase.local import Cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without Maven nobody can have HBase's jars; where it is, nothing is left out."""
    if shutil.which("mvn") is None:
        reason = "HBase is fetched by Maven, which is not on this machine"
        for item in items:
            if item.get_closest_marker("hbase"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def supervised(request: pytest.FixtureRequest) -> None:
    """Servers that have ended are started again, as an operator's supervisor would."""
    if "cluster" in request.fixturenames:
        made: Cluster = request.getfixturevalue("cluster")
        for process in made.processes():
            made.start(process.name)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("hbase"))
    made.up()
    yield made
    made.down()
