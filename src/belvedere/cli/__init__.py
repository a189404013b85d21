"""The command line: one file per command.

`app` lists them, `place` finds the database, `values` reads and writes text.
"""

from __future__ import annotations

INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


def main() -> None:
    """The program `belvedere`. Ctrl-C while it is being loaded ends it as at any other time."""
    try:
        from belvedere.cli.app import app

        app(prog_name="belvedere")
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
