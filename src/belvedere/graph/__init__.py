"""The maintenance graph: operators, what feeds them, and in which level of an epoch each one runs.

node.py      an operator and its inputs
levels.py    the graph of all views, level by level
binding.py   equal nodes are one; a new one gets its state tables
codec.py     plans as the catalog keeps them; the list of operators
"""

from belvedere.graph.binding import WANTED, Places, bind, places, shape
from belvedere.graph.codec import from_json, register, registered_operators, to_json
from belvedere.graph.levels import Graph
from belvedere.graph.node import Inputs, Node, columns_used, error_table, state_tables

__all__ = [
    "WANTED",
    "Graph",
    "Inputs",
    "Node",
    "Places",
    "bind",
    "columns_used",
    "error_table",
    "from_json",
    "places",
    "register",
    "registered_operators",
    "shape",
    "state_tables",
    "to_json",
]
