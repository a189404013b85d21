"""Servers of this machine: started, killed, started again, stopped."""

from __future__ import annotations

import os

import pytest

from belvedere.errors import SourceError
from belvedere.sources.servers import MariaDBServer, PostgresServer, Server
from tests.sources.servers import running

pytestmark = pytest.mark.sources


@pytest.mark.parametrize("kind", [PostgresServer, MariaDBServer])
def test_a_killed_server_comes_back_where_it_was(kind: type[Server]) -> None:
    with running(kind) as server:
        address, first = server.address, server.pid
        server.up()
        assert server.pid == first
        server.kill()
        assert not server.is_running()
        server.up()
        assert server.is_running()
        assert server.pid != first
        assert server.address == address
        assert server.down()
        assert not server.is_running()
        assert not server.down()


@pytest.mark.parametrize("kind", [PostgresServer, MariaDBServer])
def test_the_password_is_for_its_owner_only(kind: type[Server]) -> None:
    with running(kind) as server:
        assert os.stat(server.address.password_file).st_mode & 0o077 == 0
        assert server.address.password == server.address.password.strip() != ""


def test_a_directory_without_a_server_says_how_to_start_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = PostgresServer(tmp_path_factory.mktemp("empty") / "postgres")
    with pytest.raises(SourceError, match="belvedere sources up"):
        _ = server.address
    assert not server.down()
