"""A network between clients and a region server that loses answers: a TCP proxy that knows as much
of HBase's protocol as it takes to find the answer of a call.

The server listens on an address of its own and advertises that of the proxy, at the same port. An
answer is lost after the server has sent it, so its call was applied; then the connection is closed,
and the client finds out at once, as from a network that breaks.
"""

from __future__ import annotations

import random
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

ADVERTISED, LISTENS = "127.0.0.1", "127.0.0.2"
SETTINGS = {"hbase.regionserver.ipc.address": LISTENS}  # for the cluster behind proxies
_PREAMBLE = 6  # "HBas", the version, how to authenticate
_WRITES = {"Mutate", "Multi", "ExecService"}  # also conditional calls, and those of endpoints
_CALL_ID, _METHOD = 1, 3  # fields of the header of a request; the first also of an answer


@dataclass
class Loss:
    """Which answers are lost: of writes to tables whose names begin like this the first of each
    table, and a share of the others. `lost` counts them by table.
    """

    tables: str
    share: float
    seed: int = 0
    lost: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self._met: set[str] = set()
        self._name = re.compile(re.escape(self.tables).encode() + rb"[\w.]*")

    def takes(self, method: str, request: bytes) -> str | None:
        """The table, if the answer is to be lost."""
        found = self._name.search(request) if method in _WRITES else None
        if found is None:
            return None
        table = found[0].decode()
        is_first = table not in self._met
        self._met.add(table)
        return table if is_first or self._dice.random() < self.share else None


class Proxy:
    """For one region server, by its port. `loss` may be set and unset at any time."""

    def __init__(self, port: int) -> None:
        self._port, self.loss = port, None
        self._listening = socket.create_server((ADVERTISED, port))
        threading.Thread(target=self._accept, daemon=True, name=f"proxy {port}").start()

    loss: Loss | None

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:  # closed: the end of the test
                return
            try:
                server = socket.create_connection((LISTENS, self._port), timeout=5)
            except OSError:  # it is not there now; the client sees that
                client.close()
                continue
            server.settimeout(None)
            _Connection(self, client, server).start()


class _Connection:
    """A client's connection and ours to the server; both end together."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._doomed: dict[int, tuple[Loss, str]] = {}  # calls whose answers are to be lost

    def start(self) -> None:
        for pump in (self._requests, self._answers):
            threading.Thread(target=self._until_end, args=(pump,), daemon=True).start()

    def _until_end(self, pump: Callable[[], None]) -> None:
        try:
            pump()
        except OSError:  # one of the two has closed it
            pass
        finally:
            for each in (self._client, self._server):
                _shut(each)

    def _requests(self) -> None:
        self._server.sendall(_read(self._client, _PREAMBLE))
        self._server.sendall(_frame(self._client))  # who is calling
        while True:
            frame = _frame(self._client)
            call, name = _header(frame)
            method = name.decode()
            loss = self._proxy.loss
            table = loss.takes(method, frame) if loss is not None else None
            if loss is not None and table is not None:
                self._doomed[call] = loss, table
            self._server.sendall(frame)

    def _answers(self) -> None:
        while True:
            frame = _frame(self._server)
            doomed = self._doomed.get(_header(frame)[0])
            if doomed is not None:
                loss, table = doomed
                loss.lost[table] += 1
                return
            self._client.sendall(frame)


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)  # wakes the other thread, which close alone would not
    except OSError:  # it has ended already
        pass
    one.close()


def _read(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = source.recv(min(size - len(data), 1 << 20))
        if not part:
            raise ConnectionError("the other side has closed")
        data += part
    return bytes(data)


def _frame(source: socket.socket) -> bytes:
    """The next message, with its length before it."""
    length = _read(source, 4)
    return length + _read(source, struct.unpack(">I", length)[0])


def _header(frame: bytes) -> tuple[int, bytes]:
    """Call id and method of a request; call id of an answer, which has something else behind it."""
    size, at = _varint(frame, 4)
    end, call, method = at + size, -1, b""
    while at < end:
        tag, at = _varint(frame, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(frame, at)
            call = value if number == _CALL_ID else call
        elif kind == 2:
            length, at = _varint(frame, at)
            method = frame[at : at + length] if number == _METHOD else method
            at += length
        else:
            raise ValueError(f"a header has a field of an unknown kind, {kind}")
    return call, method


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of protobuf's, and where it ends."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
