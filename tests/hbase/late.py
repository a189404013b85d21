"""A worker that is stopped between its look at the floor and its first write: URL, epoch.

It stops itself there, as `kill -STOP` from outside would, and says what became of its attempt.
"""

from __future__ import annotations

import os
import signal
import sys

import pyarrow as pa

from belvedere.errors import Stale
from belvedere.stores.base import Write
from belvedere.stores.hbase.shard import HBaseShard
from belvedere.stores.hbase.store import HBaseStore

TABLE = 7

if __name__ == "__main__":
    url, epoch = sys.argv[1:]
    with HBaseStore.open(url) as store:
        shard = store.state.shard(0, int(epoch))
        assert isinstance(shard, HBaseShard)
        keys = pa.array([b"a", b"b"], pa.binary())
        before = shard.get_many(TABLE, keys)
        shard.write(Write(TABLE, keys, pa.array([b"late", b"late"], pa.binary()), before))
        look = shard._floor

        def look_and_stop() -> int:
            found = look()
            os.kill(os.getpid(), signal.SIGSTOP)
            return found

        shard._floor = look_and_stop
        try:
            shard.commit()
        except Stale:
            sys.exit(3)
