"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline: other work on the machine would decide whether a test passes.
settings.register_profile("belvedere", deadline=None, print_blob=True)
settings.load_profile("belvedere")
