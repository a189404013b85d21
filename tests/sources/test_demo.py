"""The demo over sources, as a user sees it: real servers, ended by a real Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import belvedere
from belvedere.cli.demo.market import VIEWS
from belvedere.sources.servers import MariaDBServer, PostgresServer, Server
from belvedere.waiting import wait_until

pytestmark = pytest.mark.sources

COMMAND = (sys.executable, "-c", "from belvedere.cli import main; main()", "demo", "--sources")


@pytest.mark.spark
def test_ctrl_c_ends_the_stream_and_every_view_gets_its_tick(
    postgres_server: Server, mariadb_server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "demo"
    sizes = ["--seconds", "600", "--rate", "200", "--opening", "500"]
    with subprocess.Popen(
        [*COMMAND, str(folder), *sizes],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        before = []
        for line in process.stdout:
            before.append(line)
            if line.startswith("all three change: 2"):
                break
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=300)
    assert process.returncode == 0, "".join(before) + rest + errors
    assert errors == ""
    assert rest.count("✓") == len(VIEWS)
    assert f"belvedere sources up {folder}/servers" in rest
    for server in (PostgresServer, MariaDBServer):
        assert not server(folder / "servers" / server.kind).is_running()
    with belvedere.open(folder / "shop") as db:
        sources = {s.name: s for s in db.status().sources}
        assert set(sources) == {"shop", "crm", "office"}
        assert all(s.state == "following" for s in sources.values())
        assert sources["shop"].transactions > 0
        assert sources["office"].transactions > 0 or sources["crm"].transactions > 0


def test_ctrl_c_while_servers_start_leaves_none(
    postgres_server: Server, mariadb_server: Server, tmp_path: Path
) -> None:
    """They go on without who started them, so they would stay."""
    folder = tmp_path / "demo"
    process = subprocess.Popen(
        [*COMMAND, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    postgres = PostgresServer(folder / "servers" / "postgres")
    assert wait_until(lambda: postgres.is_running() or None, 120)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert not postgres.is_running()
    assert not MariaDBServer(folder / "servers" / "mariadb").is_running()


def test_without_mariadb_and_maven_the_demo_says_how_to_get_them(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "BELVEDERE_MARIADB_HOME"}
    environment |= {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [*COMMAND, str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 1
    assert "apt-get install maven" in done.stderr
    assert list(tmp_path.iterdir()) == []
