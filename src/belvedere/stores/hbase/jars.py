"""Jars: our own, which the package brings, and HBase's, which Maven fetches into a cache once."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Literal

from belvedere.errors import StoreError

Part = Literal["client", "cluster"]
SERVER, CLIENT = "belvedere-hbase-server.jar", "belvedere-hbase-client.jar"
_HERE = Path(__file__).parent


def own(name: str) -> Path:
    """One of the jars that are built from `java/`."""
    jar = _HERE / "jars" / name
    if not jar.is_file():
        raise StoreError(
            f"{name} is not there: packages from an index have it; in a checkout, run `make java`"
            " (it needs Maven and a Java compiler)"
        )
    return jar


def missing() -> str:
    """What a cluster on this machine lacks, and how to get it; nothing is fetched."""
    if importlib.util.find_spec("jpype") is None:
        return 'JPype is not installed: pip install "belvedere[hbase]"'
    if not all((_HERE / "jars" / name).is_file() for name in (SERVER, CLIENT)):
        return "the jars of Belvedere are not built: run `make java`"
    parts: tuple[Part, ...] = ("client", "cluster")
    if not all(_place(part)[1].is_dir() for part in parts):
        return "the jars of HBase are not here: `belvedere hbase up DIRECTORY` fetches them"
    return ""


def fetched(part: Part) -> Path:
    """The directory with the jars of an HBase client, or of a whole cluster; fetched if need be."""
    pom, place = _place(part)
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w") as lock:  # several processes may need it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            _fetch(pom, place)
    return place


def _place(part: Part) -> tuple[Path, Path]:
    """What says which jars there are, and where they are, or would be."""
    pom = _HERE / "poms" / f"{part}.xml"
    return pom, _cache() / f"hbase-{part}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"


def _fetch(pom: Path, place: Path) -> None:
    """Fetch next to the place and rename: a directory of that name is complete."""
    maven = shutil.which("mvn")
    if maven is None:
        raise StoreError(
            "HBase's jars are fetched by Maven, which is not on this machine: install it (Debian:"
            f" apt-get install maven), or copy {place} from a machine that has them"
        )
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="fetching-") as temporary:
        jars = Path(temporary) / "jars"
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()[-2000:]
            raise StoreError(f"Maven could not fetch HBase's jars. It said:\n{said}")
        jars.rename(place)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "belvedere"
