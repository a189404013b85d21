"""A worker keeps its store open by path; when the directory is made anew it must not go on with the
old files.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from belvedere.stores.embedded.store import open_cached


def test_a_directory_that_was_made_anew_is_opened_anew(tmp_path: Path) -> None:
    first = open_cached(tmp_path / "shop", slots=2)
    first.catalog.transact(lambda t: t.put("name", b"old"))
    assert open_cached(tmp_path / "shop") is first
    shutil.rmtree(tmp_path / "shop")
    second = open_cached(tmp_path / "shop", slots=2)
    assert second.catalog.get_one("name") is None
    second.close()
