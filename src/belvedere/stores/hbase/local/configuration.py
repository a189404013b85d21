"""The configuration files of a cluster on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

_LOG4J = """\
status = warn
appender.file.type = File
appender.file.name = F
appender.file.fileName = ${sys:belvedere.log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n
rootLogger.level = info
rootLogger.appenderRef.f.ref = F
logger.zk.name = org.apache.zookeeper
logger.zk.level = warn
"""


def write_configuration(
    directory: Path, zookeeper_port: int, region_servers: int, settings: Mapping[str, str]
) -> Path:
    """hbase-site.xml and the logging of all processes, in `directory`/conf."""
    conf = directory / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    rows = {**_properties(directory, zookeeper_port, region_servers), **settings}
    lines = "\n".join(
        f"  <property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in rows.items()
    )
    site = f'<?xml version="1.0"?>\n<configuration>\n{lines}\n</configuration>\n'
    (conf / "hbase-site.xml").write_text(site)
    (conf / "log4j2.properties").write_text(_LOG4J)
    return conf


def _properties(directory: Path, zookeeper_port: int, region_servers: int) -> dict[str, str]:
    data = directory / "data"
    return {
        "hbase.cluster.distributed": "true",
        "hbase.rootdir": (data / "hbase").as_uri(),
        "hbase.tmp.dir": str(data / "tmp"),
        # The raw local file system really flushes; the default one, with checksums, does not.
        "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "hbase.unsafe.stream.capability.enforce": "true",
        "hbase.zookeeper.quorum": "127.0.0.1",
        "hbase.zookeeper.property.clientPort": str(zookeeper_port),
        "hbase.zookeeper.property.clientPortAddress": "127.0.0.1",
        "hbase.zookeeper.property.dataDir": str(data / "zookeeper"),
        "hbase.zookeeper.property.tickTime": "500",
        "zookeeper.session.timeout": "6000",  # how long a killed region server goes unnoticed
        "hbase.master.hostname": "localhost",
        "hbase.unsafe.regionserver.hostname": "localhost",
        "hbase.master.ipc.address": "127.0.0.1",
        "hbase.regionserver.ipc.address": "127.0.0.1",
        "hbase.master.info.port": "-1",
        "hbase.regionserver.info.port": "-1",
        "hbase.master.wait.on.regionservers.mintostart": str(region_servers),
        "hbase.master.wait.on.regionservers.interval": "300",
        "hbase.master.wait.on.regionservers.timeout": "2000",
        "hbase.regionserver.handler.count": "12",
        "hbase.hregion.memstore.flush.size": str(64 << 20),
        "hbase.master.logcleaner.ttl": "20000",
        "hbase.cleaner.scan.dir.interval": "10000",
        # Replication is how changes are captured: it tries again soon.
        "replication.source.sleepforretries": "20",
        "hbase.serial.replication.waiting.ms": "100",
        "replication.source.maxretriesmultiplier": "10",
        "replication.sleep.before.failover": "1000",
        # Rows of bulk loads are in no log; so the capture is at least told that there was one.
        "hbase.replication.bulkload.enabled": "true",
        "hbase.replication.cluster.id": "belvedere",
    }
