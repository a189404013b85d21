"""Answers of region servers are lost on the way, after the calls were applied: a real HBase behind
a proxy.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.stores.hbase.catalog import HBaseCatalog
from belvedere.stores.hbase.local import Cluster
from tests.hbase.proxy import SETTINGS, Loss, Proxy
from tests.hbase.stores import namespace, open_new
from tests.hbase.test_catalog import increment
from tests.hbase.test_maintained import adopt, check
from tests.hbase.users import User

pytestmark = pytest.mark.hbase
_COUNT = """
import sys
from belvedere.stores.hbase.store import HBaseStore
from tests.hbase.test_catalog import increment
with HBaseStore.open(sys.argv[1]) as store:
    for _ in range(20):
        store.catalog.transact(increment)
"""


class Behind(Cluster):
    """A cluster with one region server, and a proxy before it from the moment it has a port."""

    proxy: Proxy | None = None

    def _ports(self, names: list[str]) -> dict[str, int]:
        ports = super()._ports(names)
        self.proxy = Proxy(ports["region-server-1"])
        return ports


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    made = Behind(tmp_path_factory.mktemp("behind"), SETTINGS)
    made.up(region_servers=1)
    yield made
    made.down()
    assert made.proxy is not None
    made.proxy.close()


@pytest.fixture
def proxy(behind: Behind) -> Iterator[Proxy]:
    assert behind.proxy is not None
    yield behind.proxy
    behind.proxy.loss = None


def test_transactions_count_exactly_when_their_answers_are_lost(
    behind: Behind, proxy: Proxy
) -> None:
    with open_new(behind, ()) as store:
        table = f"{store.address.namespace}:belvedere"
        store.catalog.transact(increment)
        proxy.loss = Loss(table, share=0.4)
        command = [sys.executable, "-c", _COUNT, store.url]
        other = subprocess.Popen(command)
        catalogs = [HBaseCatalog(store.client.cells(table)) for _ in range(2)]

        def count(catalog: HBaseCatalog) -> None:
            for _ in range(20):
                catalog.transact(increment)

        threads = [threading.Thread(target=count, args=(each,)) for each in catalogs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert other.wait(120) == 0
        assert proxy.loss.lost[table] > 10
        assert store.catalog.get_one("n") == b"61"


def test_views_are_right_when_answers_of_all_writes_of_the_store_are_lost(
    behind: Behind, proxy: Proxy
) -> None:
    """Catalog, index of the log, marks of barriers, batches of state: all repeat what they did."""
    user, name = User(behind), namespace()
    user.create("lost")
    with belvedere.open(behind.url(name), slots=2, grace=0) as db:
        db._runner = LocalRunner(db.store)
        adopt(db, "lost")
        proxy.loss = Loss(f"{name}:", share=0.3)
        for number in range(8):
            for row in range(number, number + 5):
                user.put("lost", b"r%d" % row, a=str(number % 3), b=str(row))
            user.delete("lost", b"r%d" % number)
            assert len(check(db, "lost")) == 4
        kinds = {f"{name}:{part}" for part in ("belvedere", "log", "marks", "state")}
        assert kinds <= set(proxy.loss.lost)
