"""Which JVM options name the archive of Spark's classes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from belvedere.spark.archive import archive_path, with_archive

OPTIONS = "spark.driver.extraJavaOptions"
OURS = {OPTIONS: "-XX:+UseSerialGC", "spark.ui.enabled": "false"}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment and a Java of the test's own."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "an environment"))
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, "17.0.1")))
    return tmp_path


def java(folder: Path, version: str) -> Path:
    home = folder / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    (home / "bin" / "java").touch()
    (home / "release").write_text(f'JAVA_VERSION="{version}"')
    return home


def test_without_an_archive_settings_stay(environment: Path) -> None:
    assert with_archive(OURS, {}) == OURS


def test_an_archive_is_named_in_quotes_unless_the_options_are_the_user_s(environment: Path) -> None:
    archive_path().parent.mkdir(parents=True)
    archive_path().touch()
    more = f'-XX:+UseSerialGC "-XX:SharedArchiveFile={archive_path()}"'
    assert with_archive(OURS, {}) == {**OURS, OPTIONS: more}
    assert with_archive(OURS, {OPTIONS: OURS[OPTIONS]}) == OURS


def test_another_java_has_another_archive(environment: Path) -> None:
    before = archive_path()
    java(environment, "17.0.2")
    assert archive_path() != before
