"""belvedere hbase, as a user types it: a cluster of this machine, and a database in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from belvedere.stores.hbase.local import Cluster
from tests.hbase.stores import namespace
from tests.hbase.users import User

pytestmark = pytest.mark.hbase


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from belvedere.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def answer(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_cluster_that_is_up_is_shown_and_left_as_it_is(cluster: Cluster) -> None:
    before = cluster.processes()
    shown = answer("hbase", "up", str(cluster.directory), "--namespace", "mine")
    assert shown["url"] == cluster.url("mine")
    assert [p["pid"] for p in shown["processes"]] == [p.pid for p in before]
    assert all(p["running"] for p in shown["processes"])
    assert answer("hbase", "status", str(cluster.directory), "--namespace", "mine") == shown


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    for arguments, said in (
        (("hbase", "down", str(tmp_path)), "has no HBase"),
        (("hbase", "up", "hbase://zk:2181/ns"), "directory"),
        (("hbase", "install", "hbase://127.0.0.1:1/ns"), "capture=DIRECTORY"),
        (("hbase", "install", "zk:2181"), "no address"),
    ):
        done = run(*arguments)
        assert done.returncode != 0
        assert said in done.stderr.replace("\n", " ")
        assert "Traceback" not in done.stderr


def test_a_database_is_made_and_used_from_the_command_line(cluster: Cluster) -> None:
    """Up to where Spark would be needed."""
    User(cluster).create("typed")
    url = cluster.url(namespace())
    assert answer("hbase", "install", url)["done"]
    assert run("init", url, "--slots", "2").returncode == 0
    table = (
        "CREATE TABLE typed (id STRING, a STRING, PRIMARY KEY (id))"
        " USING hbase OPTIONS (table = 'typed', family = 'f')"
    )
    assert run("--db", url, "sql", table).returncode == 0
    assert run("--db", url, "put", "typed", "id=x", "a=1").returncode == 0
    assert answer("--db", url, "get", "typed", "x") == {"id": "x", "a": "1"}
    assert answer("--db", url, "status")["views"] == []
    assert answer("hbase", "uninstall", url)["done"]
