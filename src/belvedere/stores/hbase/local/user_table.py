"""A table as a user of HBase would make it."""

from __future__ import annotations

from belvedere.stores.hbase.client import Client
from belvedere.stores.hbase.url import parse


def create_table(url: str, name: str, family: str) -> None:
    """Make `namespace:name` with one family in the cluster of a URL, if it is not there."""
    client = Client(parse(url))
    try:
        if not client.tables.exists(name):
            client.tables.create_namespace(name.partition(":")[0])
            client.tables.create(name, {family: 1})
    finally:
        client.close()
