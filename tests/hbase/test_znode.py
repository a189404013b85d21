"""An HBase that has another place in ZooKeeper than usual: all our clients find it."""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.stores.hbase.local import Cluster
from tests.hbase.test_maintained import adopt, check
from tests.hbase.users import User

pytestmark = pytest.mark.hbase


def test_tables_are_captured_where_hbase_has_another_place(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, znode="/elsewhere")
    cluster.up(region_servers=1)
    try:
        user = User(cluster)
        user.create("far")
        user.put("far", b"x", a="1")
        with belvedere.open(cluster.url("far"), slots=2, grace=0) as db:
            assert "znode=/elsewhere" in db.store.url
            db._runner = LocalRunner(db.store)
            adopt(db, "far")
            user.put("far", b"y", a="2")
            assert len(check(db, "far")) == 2
    finally:
        cluster.down()
