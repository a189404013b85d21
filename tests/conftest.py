"""Settings for all tests."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

# No deadline: other work on the machine would decide whether a test passes.
settings.register_profile("belvedere", deadline=None, print_blob=True)
settings.load_profile("belvedere")

# What a shell starts in the background ignores it, and so do the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What failed once is asked first, then files with slow tests, so that at the end of a run all
    workers have something to do.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path.name != "test_regressions.py", item.path not in slow))
