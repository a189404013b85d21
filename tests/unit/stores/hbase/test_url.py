from __future__ import annotations

import pytest

from belvedere.errors import StoreError
from belvedere.stores.hbase.url import parse
from belvedere.stores.registry import open_store


def test_an_address_has_servers_a_namespace_and_options() -> None:
    found = parse("hbase://a:2182,b/shop?capture=/var/some dir&slots=16&znode=/hb&grace=20")
    assert found.quorum == (("a", 2182), ("b", 2181))
    assert (found.namespace, found.capture, found.slots) == ("shop", "/var/some dir", 16)
    assert (found.znode, found.grace, found.servers) == ("/hb", 20.0, "a:2182,b:2181")


def test_the_url_of_an_address_opens_the_same_store() -> None:
    for text in (
        "hbase://localhost/belvedere",
        "hbase://a:2182,b/shop?capture=/var/some%20dir&znode=/hb&grace=20",
    ):
        found = parse(text)
        assert parse(found.url) == found
    assert parse("hbase://localhost/belvedere").url == "hbase://localhost:2181/belvedere"
    assert parse("hbase://localhost/belvedere?slots=4").url == "hbase://localhost:2181/belvedere"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("hbase:here", "where HBase is"),
        ("hbase:///ns", "no address of a ZooKeeper server"),
        ("hbase://host:port/ns", "no address of a ZooKeeper server"),
        ("hbase://host", "the namespace has letters"),
        ("hbase://host/a-b", "the namespace has letters"),
        ("hbase://host/ns?slot=4", "not slot"),
        ("hbase://host/ns?slots=many", "numbers"),
        ("hbase://host/ns?grace=-1", "seconds"),
        ("hbase://host/ns?slots=257", "from 1 to 256"),
    ],
)
def test_what_is_no_address_is_refused_with_an_example(url: str, why: str) -> None:
    with pytest.raises(StoreError, match=why):
        parse(url)
    with pytest.raises(StoreError, match=why):
        open_store(url)


@pytest.mark.parametrize("slots", [0, 257, "4", True])
def test_a_number_of_slots_that_is_none_is_refused(slots: object) -> None:
    with pytest.raises(StoreError, match="from 1 to 256"):
        open_store("hbase://localhost/ns", slots=slots)
