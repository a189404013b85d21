"""What the engine notes while `belvedere run` goes on."""

from __future__ import annotations

import logging
import re

import pytest

from belvedere.cli.noted import noted


def test_what_the_engine_notes_has_its_time_and_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log, text = logging.getLogger("belvedere"), "the server [db1] does not answer " * 9
    with noted():
        log.warning("source %s: %s", "shop", text)
        log.info("source shop: all is well again")
    log.info("later")
    said = capsys.readouterr()
    first, second = said.err.splitlines()
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "
    assert re.fullmatch(time + re.escape(f"source shop: {text}").rstrip() + " *", first)
    assert re.fullmatch(time + "source shop: all is well again", second)
    assert said.out == ""
