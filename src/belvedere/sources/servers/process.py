"""Starting, looking at and stopping one server whose data is in one directory.

`server.json` in the directory names the process by id, start time and port. A process is only ever
ended by its id, and only while it is the one that was started: ids are used again.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path

from belvedere.errors import SourceError
from belvedere.processes import start_time
from belvedere.waiting import wait_until

USER, DATABASE = "belvedere", "shop"
_READY_SECONDS, _STOP_SECONDS = 120, 30
# Servers refuse to run as root. What they become may still enter directories of root's, so that
# data can lie anywhere.
_NOBODY = (
    "setpriv",
    "--reuid=nobody",
    "--regid=nogroup",
    "--clear-groups",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
)
# What this process has started; it may end before them, but must collect those that end before it.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Address:
    """How to reach a server; the file holds the password and nothing else."""

    type: str
    host: str
    port: int
    user: str
    database: str
    password_file: str

    @property
    def password(self) -> str:
        return Path(self.password_file).read_text()


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    started: int
    port: int


class Server(ABC):
    """A server in a directory, running or not. The kinds say what is run, and when it is ready."""

    kind = ""
    stop_signal = signal.SIGTERM

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory).absolute()
        self._file = self.directory / "server.json"
        self._password = self.directory / "password"

    @abstractmethod
    def _initialise(self) -> None:
        """Make an empty database in `data`, with our user."""

    @abstractmethod
    def _command(self, port: int) -> list[str]: ...

    @abstractmethod
    def _is_ready(self, port: int) -> bool: ...

    def _may_try_again(self, said: str) -> bool:
        """Whether a start that has failed with these words would succeed a little later."""
        return False

    @property
    def exists(self) -> bool:
        return self._file.is_file()

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def _unfinished(self) -> Path:
        return self.directory / "unfinished"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def port(self) -> int:
        return self._process().port

    @property
    def pid(self) -> int:
        return self._process().pid

    @property
    def address(self) -> Address:
        password_file = str(self._password)
        return Address(self.kind, "127.0.0.1", self.port, USER, DATABASE, password_file)

    def is_running(self) -> bool:
        return self.exists and _is_alive(self._process())

    def up(self) -> None:
        """Start the server if it does not run, and wait until it answers."""
        if self.is_running():
            return
        port = self.port if self.exists else _free_port()
        if not self.exists:
            self._make()
        try:
            if wait_until(lambda: self._start(port), _READY_SECONDS) is None:
                raise self._failed(f"did not start within {_READY_SECONDS} s")
        except BaseException:  # also Ctrl-C: what was started would run on without an owner
            self.down()
            raise

    def down(self) -> bool:
        """Stop the server, if it runs; its data stays."""
        return self._end(self.stop_signal)

    def kill(self) -> None:
        """End the server as a crash does."""
        self._end(signal.SIGKILL)

    def _make(self) -> None:
        """Until the mark is gone the data may be half made: it is made anew."""
        if self._unfinished.exists():
            shutil.rmtree(self.directory)
        if self.directory.exists() and any(self.directory.iterdir()):
            raise SourceError(
                f"{self.directory} is not empty, and no {self.kind} of Belvedere: choose another"
                " directory"
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        self._unfinished.touch()
        self._password.touch(mode=0o600)
        self._password.write_text(secrets.token_urlsafe(16))
        self._give_away(self.directory)
        self._give_away(self._password)
        self._initialise()

    def _start(self, port: int) -> bool | None:
        """True when the server answers; None if it ended, and may be started again."""
        self.log.write_bytes(b"")
        with open(self.log, "ab") as output:
            child = subprocess.Popen(
                self._as_nobody(self._command(port)),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C at this command is not meant for the server
            )
        _children[child.pid] = child
        self._write(_Process(child.pid, start_time(child.pid), port))
        self._unfinished.unlink(missing_ok=True)
        ready = wait_until(lambda: self._answers(child, port), _READY_SECONDS)
        if ready is False and not self._may_try_again(self.log.read_text(errors="replace")):
            raise self._failed("ended while it was starting")
        return ready or None

    def _answers(self, child: subprocess.Popen[bytes], port: int) -> bool | None:
        if child.poll() is not None:
            return False
        return True if self._is_ready(port) else None

    def _end(self, how: signal.Signals) -> bool:
        if not self.is_running():
            return False
        process = self._process()
        os.kill(process.pid, how)

        def ended() -> bool | None:
            return None if _is_alive(process) else True

        if wait_until(ended, _STOP_SECONDS) is None:
            os.kill(process.pid, signal.SIGKILL)
            wait_until(ended, None)
        child = _children.pop(process.pid, None)
        if child is not None:
            child.wait()
        return True

    def _run(self, command: list[str], given: str = "") -> None:
        """Run one of the server's programs to its end."""
        done = subprocess.run(
            self._as_nobody(command),
            cwd=self.directory,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()[-2000:]
            raise SourceError(
                f"{Path(command[0]).name} failed in {self.directory}. It said:\n{said}"
            )

    def _as_nobody(self, command: list[str]) -> list[str]:
        return [*_NOBODY, *command] if os.geteuid() == 0 else command

    def _give_away(self, path: Path) -> None:
        if os.geteuid() == 0:
            shutil.chown(path, "nobody", "nogroup")

    def _failed(self, what: str) -> SourceError:
        said = self.log.read_text(errors="replace").strip()[-800:] or "it said nothing"
        return SourceError(f"{self.kind} in {self.directory} {what}: {said}. Its log is {self.log}")

    def _process(self) -> _Process:
        if not self.exists:
            raise SourceError(
                f"{self.directory} has no {self.kind}: start one with belvedere sources up"
                f" {self.directory.parent}"
            )
        return _Process(**json.loads(self._file.read_text()))

    def _write(self, process: _Process) -> None:
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(process)) + "\n")
        temporary.replace(self._file)


def _is_alive(process: _Process) -> bool:
    """Whether the process is there and the same; one that ended and was not collected is not."""
    child = _children.get(process.pid)
    if child is not None and child.poll() is not None:
        return False
    if start_time(process.pid) != process.started:
        return False
    try:
        text = Path(f"/proc/{process.pid}/stat").read_text()
    except OSError:  # it has ended meanwhile
        return False
    return text[text.rindex(")") + 2] not in "ZX"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
        return port
