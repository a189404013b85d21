"""Starting, looking at and stopping the processes of a cluster in one directory.

`cluster.json` in the directory says which processes there are, by process id and port. A process is
only ever ended by its id, and only while its command line names the directory.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from belvedere.errors import StoreError
from belvedere.stores.hbase import jars
from belvedere.stores.hbase.local.configuration import write_configuration
from belvedere.waiting import wait_until

_PACKAGE = "org.apache.hadoop.hbase"
_ZOOKEEPER, _MASTER, _REGION_SERVER = "zookeeper", "master", "region-server"
_MAIN = {
    _ZOOKEEPER: f"{_PACKAGE}.zookeeper.HQuorumPeer",
    _MASTER: f"{_PACKAGE}.master.HMaster",
    _REGION_SERVER: f"{_PACKAGE}.regionserver.HRegionServer",
}
_HEAP = {_ZOOKEEPER: "128m", _MASTER: "384m", _REGION_SERVER: "1g"}
# HBase reaches into these packages; newer Javas close them.
_OPEN = (
    "java.lang",
    "java.lang.reflect",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "jdk.internal.ref",
    "sun.nio.ch",
)
_READY_SECONDS, _STOP_SECONDS = 120, 30
# What this process has started; it may end before them, but must collect those that end before it.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class LocalProcess:
    """A process as it was started: `name` is zookeeper, master or region-server-1 and so on."""

    name: str
    pid: int
    port: int

    @property
    def kind(self) -> str:
        return _REGION_SERVER if self.name.startswith(_REGION_SERVER) else self.name


class Cluster:
    """A cluster in a directory, running or not.

    `znode` is HBase's place in ZooKeeper; `settings` go to hbase-site.xml beside our own.
    """

    def __init__(
        self,
        directory: str | Path,
        settings: Mapping[str, str] | None = None,
        znode: str = "/hbase",
    ) -> None:
        self.directory, self.znode = Path(directory).absolute(), znode
        self._settings = {"zookeeper.znode.parent": znode, **(settings or {})}
        self._file = self.directory / "cluster.json"

    @property
    def exists(self) -> bool:
        return self._file.is_file()

    @property
    def capture(self) -> Path:
        """Where region servers write the changes that they capture."""
        return self.directory / "capture"

    def url(self, namespace: str = "belvedere") -> str:
        """What `belvedere.open` takes."""
        port = self._started(_ZOOKEEPER).port
        place = "" if self.znode == "/hbase" else f"&znode={self.znode}"
        return f"hbase://127.0.0.1:{port}/{namespace}?capture={self.capture}{place}"

    def processes(self) -> list[LocalProcess]:
        """All that were started and not stopped; a killed one stays in this list."""
        if not self.exists:
            return []
        return [LocalProcess(**each) for each in json.loads(self._file.read_text())["processes"]]

    def running(self) -> list[LocalProcess]:
        return [process for process in self.processes() if self.is_running(process)]

    def is_running(self, process: LocalProcess) -> bool:
        """Whether the process is there, and is ours: ids are used again."""
        shown = subprocess.run(
            ["ps", "-ww", "-o", "stat=,command=", "-p", str(process.pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        return not shown.startswith("Z") and self._mark(process.name) in shown.split()

    def up(self, region_servers: int = 2) -> None:
        """Start what does not run, and wait until the cluster works."""
        if region_servers < 1:
            raise StoreError(f"a cluster has at least one region server, not {region_servers}")
        for directory in (self.directory, self.directory / "logs", self.capture):
            directory.mkdir(parents=True, exist_ok=True)
        names = [f"{_REGION_SERVER}-{number}" for number in range(1, region_servers + 1)]
        ports = self._ports([_ZOOKEEPER, _MASTER, *names])
        write_configuration(self.directory, ports[_ZOOKEEPER], region_servers, self._settings)
        try:
            for name, port in ports.items():
                self.start(name, port)
            self._await(region_servers)
        except BaseException:  # also Ctrl-C: what was started would run on without an owner
            self.down()
            raise

    def start(self, name: str, port: int | None = None) -> LocalProcess:
        """Start one process, if it does not run; with the port that it had."""
        old = {process.name: process for process in self.processes()}
        if name in old and self.is_running(old[name]):
            return old[name]
        process = self._launch(name, port or old[name].port)
        self._write([*(p for p in self.processes() if p.name != name), process])
        return process

    def down(self) -> list[LocalProcess]:
        """Stop all processes, region servers first; what they stored stays."""
        order = (_REGION_SERVER, _MASTER, _ZOOKEEPER)
        stopped = []
        for kind in order:
            some = [process for process in self.running() if process.kind == kind]
            for process in some:
                os.kill(process.pid, signal.SIGTERM)
            for process in some:
                self._await_end(process)
            stopped += some
        return stopped

    def kill(self, name: str) -> None:
        """End one process as a crash does."""
        process = self._started(name)
        os.kill(process.pid, signal.SIGKILL)
        self._await_end(process)

    def _ports(self, names: list[str]) -> dict[str, int]:
        """Ports of all processes: those that they had, else free ones."""
        known = {process.name: process.port for process in self.processes()}
        with _free_ports(len(names)) as free:
            return {name: known.get(name) or next(free) for name in names}

    def _launch(self, name: str, port: int) -> LocalProcess:
        kind = LocalProcess(name, 0, port).kind
        log = self.directory / "logs" / name
        options = [self._mark(name), f"-Dbelvedere.log={log}.log", f"-Xmx{_HEAP[kind]}"]
        arguments = {
            _ZOOKEEPER: [],
            _MASTER: ["-D", f"hbase.master.port={port}"],
            _REGION_SERVER: ["-D", f"hbase.regionserver.port={port}"],
        }[kind]
        command = [*self._java(options), _MAIN[kind], *arguments, "start"]
        with open(f"{log}.out", "ab") as output:
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C at this command is not meant for the cluster
            )
        _children[started.pid] = started
        return LocalProcess(name, started.pid, port)

    def _java(self, options: list[str]) -> list[str]:
        java = shutil.which("java")
        if java is None:
            raise StoreError(
                "HBase needs a Java of its own, 17 or 21, and there is none on the PATH: install"
                " one (Debian: apt-get install openjdk-17-jre-headless)"
            )
        classes = [self.directory / "conf", jars.own(jars.SERVER), jars.fetched("cluster") / "*"]
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN]
        return [
            java,
            *options,
            "-XX:+UseSerialGC" if os.cpu_count() == 1 else "-XX:+UseG1GC",
            "-Djava.net.preferIPv4Stack=true",
            "-Dzookeeper.admin.enableServer=false",  # else it listens on all addresses
            "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
            "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
            *opened,
            "-cp",
            os.pathsep.join(map(str, classes)),
        ]

    def _await(self, region_servers: int) -> None:
        """Wait until the cluster works; the first process that ends says why it does not."""
        options = ["-Dbelvedere.log=/dev/null", "-Xmx128m", "-XX:TieredStopAtLevel=1"]
        main = ["belvedere.hbase.server.Ready", str(region_servers), str(_READY_SECONDS)]
        asking = subprocess.Popen(
            [*self._java(options), *main],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            while True:
                try:
                    _, missing = asking.communicate(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    self._check_ended()
        finally:
            asking.kill()
            asking.wait()
        if asking.returncode != 0:
            raise StoreError(
                f"HBase did not start in {_READY_SECONDS} s: {missing.strip()}. Its logs are in"
                f" {self.directory / 'logs'}"
            )

    def _check_ended(self) -> None:
        for process in self.processes():
            if not self.is_running(process):
                output = (self.directory / "logs" / f"{process.name}.out").read_text()
                raise StoreError(
                    f"HBase's {process.name} ended while it was starting:"
                    f" {output.strip()[-800:] or 'it said nothing'}. Its logs are in"
                    f" {self.directory / 'logs'}"
                )

    def _await_end(self, process: LocalProcess) -> None:
        def ended() -> bool | None:
            return None if self.is_running(process) else True

        if wait_until(ended, _STOP_SECONDS) is None:
            os.kill(process.pid, signal.SIGKILL)
            wait_until(ended, None)
        _reap(process.pid)

    def _started(self, name: str) -> LocalProcess:
        for process in self.processes():
            if process.name == name:
                return process
        raise StoreError(
            f"{self.directory} has no {name}: start a cluster with belvedere hbase up"
            f" {self.directory}"
        )

    def _mark(self, name: str) -> str:
        return f"-Dbelvedere.process={self.directory}/{name}"

    def _write(self, processes: list[LocalProcess]) -> None:
        text = json.dumps({"processes": [asdict(process) for process in processes]}, indent=2)
        temporary = self._file.with_suffix(".new")
        temporary.write_text(text + "\n")
        temporary.replace(self._file)


@contextmanager
def _free_ports(count: int) -> Iterator[Iterator[int]]:
    """Ports on loopback that nobody has while they are looked for."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        yield (each.getsockname()[1] for each in held)
    finally:
        for each in held:
            each.close()


def _reap(pid: int) -> None:
    """Collect a child of ours that has ended; others are not ours to collect."""
    child = _children.pop(pid, None)
    if child is not None:
        child.wait()
