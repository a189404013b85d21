"""What differs between a table of a slot as of two epochs: only runs that one of the lists has and
the other has not are read.

An epoch's own run may hold older records with which it was merged, and a run that was merged since
many more. So what these runs have are keys that may differ; the values as of both epochs decide.
That is right however runs were merged, and merging bounds what is read in vain: a record is in
about as many merges as there are levels of runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.stores.base import Difference, TableId, differing
from belvedere.stores.embedded import runs
from belvedere.stores.embedded.shard import EmbeddedReader, SlotFiles
from belvedere.types import Epoch

_BATCH = 100_000


def between(place: SlotFiles, table: TableId, low: Epoch, high: Epoch) -> Iterator[Difference]:
    old, new = (EmbeddedReader(place, epoch).runs(table) for epoch in (low, high))
    common = {run.refs for run in old} & {run.refs for run in new}
    apart = [run for run in (*new, *old) if run.refs not in common]
    for keys, _ in runs.scan(apart, b"", None, _BATCH, drop_deleted=False):
        found = differing(keys, runs.get_many(old, keys), runs.get_many(new, keys))
        if found is not None:
            yield found
