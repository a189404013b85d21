"""An archive of the classes that Spark's JVM loads, from which it starts with less work.

A JVM that starts Spark and runs a few small jobs spends most of its time on reading, checking and
linking some fifteen thousand classes. Java can keep them in a file that it maps instead (class data
sharing). `python -m belvedere.spark.archive` makes that file once, for one Java and one
environment; sessions use it if it is there. Whatever does not fit is loaded as before.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belvedere.errors import PipelineError
from belvedere.spark.java import ensure_java

if TYPE_CHECKING:
    from belvedere.spark.frames import Batches

_OPTIONS = "spark.driver.extraJavaOptions"
_PATIENCE = 120.0  # seconds in which the JVM writes the archive when it ends


def with_archive(settings: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session whose JVM uses the archive, unless its options are the user's."""
    path = archive_path()
    if _OPTIONS in wanted or not path.is_file():
        return dict(settings)
    return {**settings, _OPTIONS: f'{settings[_OPTIONS]} "-XX:SharedArchiveFile={path}"'}


def archive_path() -> Path:
    """Where the archive is, or would be: it is good for one Java and the jars of one PySpark."""
    import pyspark

    java = _java()
    release = java.parents[1] / "release"
    parts = (str(java), release.read_text() if release.is_file() else "", pyspark.__version__)
    digest = hashlib.sha256("\0".join((*parts, str(pyspark.__file__))).encode()).hexdigest()
    return Path(sys.prefix, "share", "belvedere", f"spark-{digest[:16]}.jsa")


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    return Path(os.path.realpath(os.path.join(home, "bin", "java") if home else _on_path()))


def _on_path() -> str:
    return shutil.which("java") or "java"


def make() -> Path:
    """Make the archive of a small run; for a process of its own, since its JVM writes it when it
    ends.
    """
    ensure_java()
    path = archive_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, "made.jsa")
        _run(made)
        if not made.is_file():
            raise PipelineError(
                f"{_java()} has not written an archive of classes: Spark works without, it starts"
                " slower"
            )
        os.replace(made, path)
    return path


def _run(made: Path) -> None:
    """What epochs and verifications ask of Spark, in a JVM that notes what it loads."""
    from belvedere.spark.frames import map_in_arrow
    from belvedere.spark.session import JAVA, session

    spark = session("local[2]", {_OPTIONS: f'{JAVA} "-XX:ArchiveClassesAtExit={made}"'})
    numbers = map_in_arrow(spark.range(0, 100, 1, 2), _same, "id BIGINT")
    exchanged = map_in_arrow(
        numbers.repartitionById(2, (numbers.id % 2).cast("int")), _same, "id BIGINT"
    )
    exchanged.createOrReplaceTempView("rows")
    spark.sql(
        "SELECT a.id % 7 AS k, count(*), sum(a.id), min(b.id) FROM rows a LEFT JOIN rows b"
        " ON a.id = b.id GROUP BY 1 HAVING count(*) > 1 ORDER BY 1"
    ).collect()
    spark.sql("SELECT id FROM rows EXCEPT ALL SELECT id + 1 FROM rows").toArrow()
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.proc.stdin.close()  # which ends it in order
    gateway.proc.wait(_PATIENCE)


def _same(batches: Batches) -> Batches:
    yield from batches


def main() -> None:
    try:
        print(f"Spark's classes are in {make()}")
    except PipelineError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
