"""The same on a cluster: epochs as jobs of a standalone Spark cluster, state and tables in HBase."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from belvedere.stores.hbase.local import Cluster
from tests.hbase.on_a_cluster import ROWS
from tests.hbase.spark_cluster import spark_cluster
from tests.hbase.stores import namespace
from tests.hbase.users import User

pytestmark = [pytest.mark.hbase, pytest.mark.spark]


def test_views_are_kept_by_a_standalone_spark_cluster(cluster: Cluster, tmp_path: Path) -> None:
    User(cluster).create("on_a_cluster", splits=[b"o5"])
    with spark_cluster(tmp_path / "spark") as spark:
        name = namespace()
        arguments = [cluster.url(name), spark.url, "on_a_cluster", str(cluster.capture / name)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.hbase.on_a_cluster", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    told = ["executors=2", f"rows={ROWS - ROWS // 10}", "scans=2"]  # one for each region
    assert done.stdout.split() == told
