"""A process that counts in a catalog over a lossy network: URL, how often, seed."""

from __future__ import annotations

import sys

from belvedere.stores.hbase.store import HBaseStore
from tests.hbase.test_catalog import increment, lossy_catalog

if __name__ == "__main__":
    url, times, seed = sys.argv[1:]
    with HBaseStore.open(url) as opened:
        catalog = lossy_catalog(opened, int(seed))[0]
        for _ in range(int(times)):
            catalog.transact(increment)
