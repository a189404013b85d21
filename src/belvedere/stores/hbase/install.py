"""What a cluster needs for change capture: what an operator does by hand, and the rest done."""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.errors import StoreError
from belvedere.stores.hbase import jars
from belvedere.stores.hbase.capture import Capture
from belvedere.stores.hbase.log_index import LogIndex
from belvedere.stores.hbase.segments import SegmentFiles

_STEPS = """\
Change capture runs inside HBase's region servers. By hand, once, before anything else:

1. Copy {jar} to every region server and master, onto HBase's class path
   (for instance into the directory lib of its installation).
2. Make the directory {directory} on a file system that all region servers and all
   processes of Belvedere have, and let the user that HBase runs as write into it.
3. In hbase-site.xml of the region servers, for changes that arrive soon after a region has moved
   (HBase waits 10 s otherwise):
     <property><name>hbase.serial.replication.waiting.ms</name><value>200</value></property>
     <property><name>replication.source.sleepforretries</name><value>200</value></property>
   To be told of bulk loads, also hbase.replication.bulkload.enabled = true and
   hbase.replication.cluster.id. hbase.wal.provider must not be multiwal.
4. Restart the region servers, one after the other.
"""


def manual_steps(directory: str) -> str:
    """What an operator does by hand before `install`."""
    return _STEPS.format(jar=jars.own(jars.SERVER), directory=directory)


def install(quorum: str, namespace: str, directory: str, settings: Sequence[str] = ()) -> list[str]:
    """Add the peer and the tables that capture needs; returns what was done. Idempotent.

    `settings` go to the peer: names and values in turns.
    """
    files = SegmentFiles.of(directory, namespace)
    files.directory.mkdir(parents=True, exist_ok=True)
    capture = Capture(quorum, namespace)
    state = capture.state()
    if state and SegmentFiles(capture.directory()).directory != files.directory:
        raise StoreError(
            f"the peer {capture.peer} captures into {capture.directory()}, not into"
            f" {files.directory}: leave the directory out, or run belvedere hbase uninstall first"
        )
    capture.install(files.url, settings)
    LogIndex(quorum, namespace).create()
    if state == "disabled":
        capture.enable()
        return [f"enabled the peer {capture.peer}"]
    if state:
        return []
    return [f"added the peer {capture.peer}, which captures into {files.url}"]


def uninstall(quorum: str, namespace: str) -> list[str]:
    """Remove the peer: HBase then keeps no log for us, and changes are lost to views.

    Tables and captured files stay.
    """
    capture = Capture(quorum, namespace)
    if not capture.state():
        return []
    capture.uninstall()
    return [f"removed the peer {capture.peer}; the jar may be removed from the class path"]
