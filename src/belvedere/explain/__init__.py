"""EXPLAIN: how a view is maintained, as a tree (`tree.py`) and as text (`text.py`)."""

from belvedere.explain.text import explain
from belvedere.explain.tree import Explained, ExplainedTable, Texts, Users, explain_tree

__all__ = ["Explained", "ExplainedTable", "Texts", "Users", "explain", "explain_tree"]
