"""Options of CREATE SOURCE name TYPE mariadb."""

from __future__ import annotations

from collections.abc import Mapping

from belvedere.errors import SourceError
from belvedere.sources.mariadb.settings import Settings

_NEEDED = ("host", "database", "user")
_KNOWN = (*_NEEDED, "password", "port", "ssl_ca")


def read_options(options: Mapping[str, str]) -> Settings:
    """Refuses missing, unknown and wrong ones."""
    unknown = sorted(set(options) - set(_KNOWN))
    if unknown:
        raise SourceError(
            f"a source of type mariadb has no option {', '.join(unknown)}: use {', '.join(_KNOWN)}"
        )
    missing = [option for option in _NEEDED if not options.get(option)]
    if missing:
        raise SourceError(f"a source of type mariadb needs the options {', '.join(missing)}")
    return Settings(
        host=options["host"],
        database=options["database"],
        user=options["user"],
        password=options.get("password", ""),
        port=_port(options.get("port", "3306")),
        ssl_ca=options.get("ssl_ca"),
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise SourceError(f"port = {text!r} is no port: use a number from 1 to 65535")
    return int(text)
