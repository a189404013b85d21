"""Spark looks for modules whose name begins like this one's, and registers what they offer: so
`spark.read.format("belvedere")` works wherever Belvedere is installed.
"""

from belvedere.data_source import BelvedereSource as DefaultSource

__all__ = ["DefaultSource"]
