"""Stores and servers as an operator keeps them: several servers of one store, and its upkeep.

`replicas/` makes several servers one. `upkeep/` measures, verifies, shrinks, prunes and copies a
store. `objects.py` keeps pictures in an object store. `sql/` has the statements.
"""
