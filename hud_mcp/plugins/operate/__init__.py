"""Stores and servers as an operator keeps them: several servers of one store, and its upkeep.

`replicas/` makes several servers one. `sql/` has the statements.
"""
