"""The bare clients of the benchmark read all that we would read, and come to an end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.bench.scenarios.source_servers import SOURCE, MariaDBUsers, PostgresUsers, Users

pytestmark = pytest.mark.sources

KINDS: dict[str, type[Users]] = {"postgres": PostgresUsers, "mariadb": MariaDBUsers}


@pytest.fixture(params=KINDS)
def users(request: pytest.FixtureRequest) -> Iterator[Users]:
    made = KINDS[request.param](request.getfixturevalue(f"{request.param}_server"))
    made.create("r", 100)
    yield made
    made.run("DROP TABLE r")
    made.close()


def test_a_bare_client_reads_a_table_to_its_end(users: Users) -> None:
    few = users.read_table("r")
    users.run("INSERT INTO r SELECT id + 100, grp, val FROM r")
    assert users.totals("r") == (200, 10_100)
    assert 0 < few < users.read_table("r") <= 2 * few


def test_a_bare_client_reads_the_log_from_its_mark_on(users: Users) -> None:
    if users.kind == "postgres":  # following makes one
        users.run(f"CREATE PUBLICATION belvedere_{SOURCE} FOR TABLE r")
    users.run("UPDATE r SET val = 0")
    users.mark()
    users.run("UPDATE r SET val = 1 WHERE id <= 50")
    users.run("UPDATE r SET val = 2 WHERE id > 40")
    users.read_log(110)
    users.forget()
    assert users.totals("r") == (100, 160)
