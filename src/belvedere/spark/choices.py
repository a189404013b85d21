"""What users choose of a Spark session, looked at when a database is opened and long before Java is
started for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from belvedere.errors import PipelineError

NICE = "BELVEDERE_NICE"  # the environment variable with the priority of tasks
_MASTER = re.compile(r"local(-cluster)?(\[[^\]]+\])?|yarn|(spark|k8s|mesos)://.+")
_KEY = re.compile(r"spark(\.[A-Za-z0-9_-]+)+")
_FIXED = {
    "spark.master": "it is given as the master",
    "spark.app.name": "sessions are named belvedere",
    "spark.sql.ansi.enabled": "what a view computes depends on it",
    "spark.sql.session.timeZone": "what a view computes depends on it",
    "spark.pyspark.python": "tasks need this interpreter and its packages",
    "spark.pyspark.driver.python": "tasks need this interpreter and its packages",
}


def check_master(master: str) -> None:
    if not isinstance(master, str) or not _MASTER.fullmatch(master):
        raise PipelineError(
            f"{master!r} is no Spark master: give local[*], local[4], spark://host:7077, yarn or"
            " k8s://..."
        )


def check_conf(conf: Mapping[str, str]) -> None:
    """Refuse settings that Spark would not take, or that are not for the user to choose."""
    if not isinstance(conf, Mapping):
        raise PipelineError(
            f"settings of Spark are a dict of names and texts, not a {type(conf).__name__}"
        )
    for key, value in conf.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise PipelineError(
                f"{key!r} is no setting of Spark: their names begin with spark., as in"
                " spark.driver.memory"
            )
        if not isinstance(value, str):
            raise PipelineError(
                f"the value of {key} is text: give {str(value)!r} as a str, not a"
                f" {type(value).__name__}"
            )
        if key in _FIXED:
            raise PipelineError(
                f"{key} cannot be set: {_FIXED[key]}. For a session of your own choice, pass spark="
                " to belvedere.open"
            )
