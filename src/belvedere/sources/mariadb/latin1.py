"""latin1 of MariaDB is Windows-1252, whose five free bytes it takes for control characters: a codec
that Python does not have.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

NAME = "belvedere_latin1"


def _character(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


_DECODING = "".join(_character(byte) for byte in range(256))
_ENCODING = codecs.charmap_build(_DECODING)


def _decode(data: Buffer, errors: str = "strict") -> tuple[str, int]:
    return codecs.charmap_decode(bytes(data), errors, _DECODING)


def _encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
    return codecs.charmap_encode(text, errors, _ENCODING)


def _search(name: str) -> codecs.CodecInfo | None:
    return codecs.CodecInfo(_encode, _decode, name=NAME) if name == NAME else None


def register() -> None:
    try:
        codecs.lookup(NAME)
    except LookupError:
        codecs.register(_search)
