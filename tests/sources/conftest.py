"""One server of each kind for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.errors import SourceError
from belvedere.sources.servers import MariaDBServer, PostgresServer, Server
from belvedere.sources.servers.mariadb import missing
from belvedere.sources.servers.postgres import find_programs
from tests.sources.servers import running


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    try:
        find_programs()
    except SourceError as error:
        pytest.skip(str(error))
    with running(PostgresServer) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    if missing():
        pytest.skip(missing())
    with running(MariaDBServer) as server:
        yield server


@pytest.fixture(autouse=True)
def supervised(request: pytest.FixtureRequest) -> None:
    """Servers that have ended are started again, as an operator's supervisor would."""
    for name in ("postgres_server", "mariadb_server"):
        if name in request.fixturenames:
            request.getfixturevalue(name).up()
