"""Addresses of stores in HBase: hbase://host:2181/namespace?capture=PATH&slots=N"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode

from belvedere.errors import StoreError

EXAMPLE = "hbase://localhost:2181/belvedere?capture=/var/lib/belvedere/capture"
MOST_SLOTS = 256  # a slot is the first byte of a row
_PORT = 2181
_ZNODE = "/hbase"
# HBase closes the session of a silent server after so long unless it is told otherwise; twice.
_GRACE = 180.0
_OPTIONS = ("capture", "slots", "znode", "grace")
_NAMESPACE = re.compile(r"^\w+$", re.ASCII)
_HOST = re.compile(r"^([^:/?#\s]+)(?::(\d+))?$")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is.

    `quorum` are ZooKeeper's servers, `znode` is HBase's place there. `capture` is the directory of
    captured changes, "" if there is none. `grace` are the seconds between the rise of a floor and
    the removal of what is below: longer than a region server that is cut off from the others goes
    on answering.
    """

    quorum: tuple[tuple[str, int], ...]
    namespace: str
    capture: str = ""
    slots: int | None = None
    znode: str = _ZNODE
    grace: float = _GRACE

    @property
    def servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.quorum)

    @property
    def cluster(self) -> str:
        """ZooKeeper's servers, and HBase's place there if it is not the usual one."""
        return self.servers + ("" if self.znode == _ZNODE else self.znode)

    @property
    def url(self) -> str:
        """What opens the same store again; the number of slots is kept there."""
        options = {
            "capture": self.capture,
            "znode": "" if self.znode == _ZNODE else self.znode,
            "grace": "" if self.grace == _GRACE else f"{self.grace:g}",
        }
        given = {name: value for name, value in options.items() if value}
        query = urlencode(given, safe="/", quote_via=quote)
        return f"hbase://{self.servers}/{self.namespace}" + (f"?{query}" if query else "")


def parse(text: str) -> Address:
    """An address from a URL, or from what follows its scheme."""
    rest = text.removeprefix("hbase:")
    if not rest.startswith("//"):
        raise _wrong(text, "it does not say where HBase is")
    place, _, query = rest[2:].partition("?")
    servers, _, namespace = place.partition("/")
    namespace = unquote(namespace).strip("/")
    if not _NAMESPACE.match(namespace):
        raise _wrong(text, "the namespace has letters, digits and underscores only")
    quorum = tuple(_server(each, text) for each in servers.split(","))
    return _with_options(Address(quorum, namespace), query, text)


def _server(server: str, text: str) -> tuple[str, int]:
    match = _HOST.match(server)
    if match is None:
        raise _wrong(text, f"{server!r} is no address of a ZooKeeper server")
    return match[1], int(match[2] or _PORT)


def _with_options(address: Address, query: str, text: str) -> Address:
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise _wrong(text, f"it knows {', '.join(_OPTIONS)}, not {', '.join(unknown)}")
    try:
        slots = int(options["slots"]) if "slots" in options else None
        grace = float(options.get("grace", _GRACE))
    except ValueError as error:
        raise _wrong(text, "slots and grace are numbers") from error
    if grace < 0:
        raise _wrong(text, "grace is a number of seconds")
    check_slots(slots)
    capture, znode = options.get("capture", ""), options.get("znode", _ZNODE)
    return Address(address.quorum, address.namespace, capture, slots, znode, grace)


def check_slots(slots: int | None) -> None:
    is_number = isinstance(slots, int) and not isinstance(slots, bool)
    if slots is not None and not (is_number and 1 <= slots <= MOST_SLOTS):
        raise StoreError(f"slots is {slots!r}: use a whole number from 1 to {MOST_SLOTS}")


def _wrong(text: str, why: str) -> StoreError:
    return StoreError(f"{text!r} is no address of a store in HBase: {why}. Use {EXAMPLE}")
