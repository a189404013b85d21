"""The start of Spark: broken off at any moment it leaves nothing, it prints nothing, and settings
are taken or refused.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import belvedere
from belvedere.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CATCH_UP = "from belvedere.cli import main; main()"
LONG = 120.0


def make_database(path: Path) -> None:
    with belvedere.open(path, slots=2) as db:
        db.sql("CREATE TABLE t (id INT, v INT, PRIMARY KEY (id))")
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v")
        db.table("t").put_many([{"id": i, "v": i % 7} for i in range(100)])


def fields(pid: int) -> list[str]:
    """State, parent and so on of a process; empty if there is none, or only what its parent has not
    yet asked for.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    found = text[text.rindex(")") + 2 :].split()
    return [] if found[0] in "ZX" else found


def descendants(pid: int) -> list[int]:
    parents = {int(p): f[1] for p in os.listdir("/proc") if p.isdigit() and (f := fields(int(p)))}
    found = [pid]
    for each in found:
        found += [p for p, parent in parents.items() if parent == str(each)]
    return found[1:]


def jvm(pid: int) -> int | None:
    """The process in which Spark will run, once it has become Java."""
    for each in descendants(pid):
        try:
            command = Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            continue
        if b"java\0" in command and b"org.apache.spark.deploy.SparkSubmit" in command:
            return each
    return None


def threads(pid: int) -> int:
    found = jvm(pid)
    return int(fields(found)[17]) if found and fields(found) else 0


MOMENTS: dict[str, Callable[[int], bool]] = {
    "java is looked for": lambda pid: bool(descendants(pid)),
    "the script runs": lambda pid: any(
        b"spark-class" in Path(f"/proc/{p}/cmdline").read_bytes()
        for p in descendants(pid)
        if fields(p)
    ),
    "java begins": lambda pid: jvm(pid) is not None,
    "java listens": lambda pid: threads(pid) > 16,
    "the session is made": lambda pid: threads(pid) > 30,
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_start_that_is_broken_off_leaves_nothing_behind(
    tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    make_database(tmp_path / "d")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-c", CATCH_UP, "--db", str(tmp_path / "d"), "catch-up"]
    options = {"env": {**os.environ, "TMPDIR": str(temporary)}, "start_new_session": True}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as process:  # type: ignore[call-overload]  # options by name
        assert wait_until(lambda: MOMENTS[moment](process.pid) or None, LONG)
        started = descendants(process.pid)
        os.killpg(process.pid, number)
        output, errors = process.communicate(timeout=LONG)
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in output + errors
    assert wait_until(lambda: not any(fields(pid) for pid in started) or None, LONG), (
        "a process of the start is alive"
    )
    assert [p.name for p in temporary.iterdir() if p.name != "hsperfdata_root"] == []


SCRIPT = """
import sys, belvedere
db = belvedere.open(sys.argv[1])
{body}
"""


def run(path: Path, body: str) -> subprocess.CompletedProcess[str]:
    text = SCRIPT.format(body=body)
    return subprocess.run(
        [sys.executable, "-c", text, str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_script_that_starts_a_pipeline_and_ends_prints_nothing_of_spark(tmp_path: Path) -> None:
    make_database(tmp_path / "d")
    done = run(
        tmp_path / "d",
        "db.start().await_position(100, 120)\n"
        "db.table('t').put_many([{'id': i, 'v': i % 7} for i in range(100_000)])\n"
        "print('ended')",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_after_the_death_of_java_one_error_says_what_to_do_and_that_helps(tmp_path: Path) -> None:
    make_database(tmp_path / "d")
    done = run(
        tmp_path / "d",
        "import os, signal\n"
        "db.catch_up()\n"
        "os.kill(db.spark.sparkContext._gateway.proc.pid, signal.SIGKILL)\n"
        "db.table('t').put({'id': 1000, 'v': 1})\n"
        "try: db.catch_up()\n"
        "except belvedere.BelvedereError as error: print(error)\n"
        "db.close()\n"
        "db = belvedere.open(sys.argv[1])\n"
        "db.catch_up()\n"
        "print(db.view('w').get(1)['n'])",
    )
    assert (done.returncode, done.stderr) == (0, "")
    told, answer = done.stdout.splitlines()
    assert (
        "Spark's Java process has ended or does not answer. Close the database and open it again"
        in told
    )
    assert "Spark's own messages are in " in told
    assert answer == "16"


def test_settings_reach_spark(tmp_path: Path) -> None:
    make_database(tmp_path / "d")
    done = run(
        tmp_path / "d",
        "db = belvedere.open(sys.argv[1], spark_conf={'spark.driver.memory': '700m',"
        " 'spark.sql.shuffle.partitions':"
        " '3'})\ndb.catch_up()\nprint(db.spark.conf.get('spark.sql.shuffle.partitions'),"
        " db.spark._jvm.Runtime.getRuntime().maxMemory() < 800 << 20)\nother ="
        " belvedere.open('memory:', spark_conf={'spark.driver.memory': '2g'})\ntry:"
        " other.spark\nexcept belvedere.BelvedereError as error: print(error)",
    )
    taken, refused = done.stdout.splitlines()
    assert (taken, done.stderr) == ("3 True", "")
    assert (
        "spark.driver.memory cannot be changed, this process has a Spark session already" in refused
    )


def test_a_misspelt_setting_is_refused_with_the_right_one(tmp_path: Path) -> None:
    make_database(tmp_path / "d")
    command = [
        sys.executable,
        "-c",
        CATCH_UP,
        "--db",
        str(tmp_path / "d"),
        "catch-up",
        "--conf",
        "spark.drver.memory=2g",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert (
        "Spark has no setting spark.drver.memory: write spark.driver.memory, if that is what you"
        " mean" in done.stderr
    )
