"""The command line: one file per command. `app` puts them together, `place` finds the database, `values` reads and writes text."""

from belvedere.cli.app import main

__all__ = ["main"]
