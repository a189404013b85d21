"""What Java's errors mean, and what to do about them."""

from __future__ import annotations

from typing import Any

from belvedere.errors import StoreError, TableGone, Unreachable
from belvedere.stores.hbase.jvm import java_class

_ADVICE = (
    # the name of Java's class, a part of its message, what to say
    (
        "WrongRegionException",
        "",
        "a slot is divided over regions, and a slot must be in one: merge the regions of this table"
        " that begin with the same byte (merge_region in HBase's shell)",
    ),
    (
        "DoNotRetryIOException",
        "out of range",
        "a slot is divided over regions, and a slot must be in one: merge the regions of this table"
        " that begin with the same byte (merge_region in HBase's shell)",
    ),
    (
        "IOException",
        "belvedere.hbase.server",
        "region servers do not know Belvedere's classes: put belvedere-hbase-server.jar on their"
        " class path and start them again",
    ),
    (
        "AccessDeniedException",
        "",
        "HBase does not allow this: grant the user read, write, create and admin on the namespace",
    ),
    (
        "MasterNotRunningException",
        "",
        "HBase's master does not run: start it",
    ),
)


_GONE = ("TableNotFoundException", "TableNotEnabledException", "NamespaceNotFoundException")


def translate(error: Any, servers: str) -> StoreError:
    """The error of a call, from Java's."""
    said = str(java_class("belvedere.hbase.client.Faults").of(error))
    lines = [line.partition(" ") for line in said.splitlines()]
    names = {name for name, _, _ in lines}
    first = lines[0][2][:300] if lines else str(error)
    if names & set(_GONE):
        return TableGone(
            f"a table of the store is not there, or disabled: {first}. Was the view dropped, or the"
            " namespace?"
        )
    for wanted, part, advice in _ADVICE:
        if any(name == wanted and part in message for name, _, message in lines):
            return StoreError(f"{advice}. HBase said: {first}")
    if "NoNode" in said or "is not in ZooKeeper" in said:
        return StoreError(
            f"ZooKeeper at {servers} knows no HBase: is HBase started? If its place there is not"
            " /hbase, say it with ?znode=/place"
        )
    if "KeeperErrorCode" in said or "Zookeeper" in said:
        return Unreachable(
            f"ZooKeeper at {servers} does not answer: {first}. Is it running, and is this its"
            " address?"
        )
    return Unreachable(
        f"HBase at {servers} did not do what was asked: {first}. Are its region servers and its"
        " master running?"
    )
