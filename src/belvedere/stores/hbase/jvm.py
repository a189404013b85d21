"""The JVM inside this process, with the HBase client: one for the life of the process.

It must never be started before a fork: the child would have its memory without its threads. Spark's
Python workers are forked, so the store starts it when a task first needs it.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from belvedere.errors import StoreError
from belvedere.stores.hbase import jars

_INSTALL = 'pip install "belvedere[hbase]"'
_OPTIONS = (
    "-Xmx512m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)
_starting = threading.Lock()
_process = 0  # the process that started the JVM


def java_class(name: str) -> Any:
    """A Java class by its full name; the first call of a process starts the JVM."""
    jpype = _jpype()
    with _starting:
        _start(jpype)
    return jpype.JClass(name)


def _jpype() -> Any:
    try:
        import jpype
        import jpype.config
    except ImportError:
        raise StoreError(f"HBase needs a package that is not installed: {_INSTALL}") from None
    return jpype


def _start(jpype: Any) -> None:
    global _process
    if not jpype.isJVMStarted():
        classes = [jars.own(jars.CLIENT), jars.own(jars.SERVER)]
        classes += sorted(jars.fetched("client").glob("*.jar"))
        # At exit the JVM is shut down, which ends the threads in which it enters Python, but what
        # belongs to it is not freed: objects that Python collects last may still refer to it.
        jpype.config.free_resources = False
        try:
            jpype.startJVM(*_OPTIONS, classpath=[str(jar) for jar in classes], convertStrings=False)
        except jpype.JVMNotFoundException as error:
            raise StoreError(
                "HBase needs Java 17 or newer, and none was found: install one, or let JAVA_HOME"
                " name it"
            ) from error
        _process = os.getpid()
    elif _process != os.getpid():
        raise StoreError(
            "this process was forked from one that uses HBase, where that cannot go on: open the"
            " database after the fork, or start processes with the method 'spawn'"
        )
