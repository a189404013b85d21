"""The embedded store: LMDB environments in one directory, used by several processes at once."""

from belvedere.stores.embedded.store import EmbeddedStore, open_cached

__all__ = ["EmbeddedStore", "open_cached"]
