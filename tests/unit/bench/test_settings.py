"""What a scenario's process is told is what its parent meant."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from belvedere.bench import process, suite
from belvedere.bench.scenarios.settings import Settings, parsed
from belvedere.errors import BelvedereError
from belvedere.stores.hbase import jars


def test_settings_survive_the_command_line() -> None:
    settings = Settings(work=Path("elsewhere"), ops=5, views=("V2",), flat_rows=(1, 2), timeout=1.5)
    assert parsed(settings.arguments()) == settings


def test_keys_grow_along_with_a_larger_log(tmp_path: Path) -> None:
    assert (
        "ops-2000-500-"
        in Settings(work=tmp_path, ops=1_000, keys=250, groups=10).log(ops=2_000).name
    )


def test_an_unknown_scenario_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no scenario nonsense: use ingest"):
        suite.run(Settings(work=tmp_path), ["nonsense"])


def test_a_tree_holds_the_children_and_their_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in process.tree(os.getpid())
        alone = process.memory(child.pid)
        assert 0 < alone.anonymous <= alone.resident < process.memory().resident
        child.communicate(b"\n")


def test_a_module_that_fails_says_which() -> None:
    with pytest.raises(
        RuntimeError, match=r"bench\.scenarios\.settings --no-such-option ended with"
    ):
        process.run_json("belvedere.bench.scenarios.settings", "--no-such-option")


def test_without_its_jars_hbase_alone_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.missing()
    with pytest.raises(BelvedereError, match=r"the scenario hbase cannot run: .*(pip|make|up)"):
        suite.run(Settings(work=tmp_path), ["hbase"])


def test_without_servers_sources_alone_are_refused_and_left_out_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELVEDERE_POSTGRES_BIN", str(tmp_path))
    with pytest.raises(BelvedereError, match=r"the scenario sources cannot run: .*pip install"):
        suite.run(Settings(work=tmp_path), ["sources"])
    said: list[str] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert suite.run(Settings(work=tmp_path), ["sources", "hbase"], said.append).rates == ()
    assert [text.partition(":")[0] for text in said] == ["nothing of sources", "nothing of hbase"]
