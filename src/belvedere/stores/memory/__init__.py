"""The store in memory: the specification of `stores.base`, and the ground on which the simulator
runs.

Everything is a dict or a list and is computed in the plainest way. Three things serve tests only:

    rules   single rules of the protocol can be switched off, to show that a test fails without them
    point   is called before every step that others can see; the simulator switches tasks there. A
            step is atomic.
    clock   gives the time of log blocks
"""

from belvedere.stores.memory.rows import RowRules
from belvedere.stores.memory.state import Rules
from belvedere.stores.memory.store import MemoryStore

__all__ = ["MemoryStore", "RowRules", "Rules"]
