"""Stores and servers as an operator keeps them: several servers of one store, and its upkeep.

`replicas/` makes several servers one. `upkeep/` measures, verifies, shrinks, prunes and copies a
store. `quotas.py` bounds what each principal uses of it. `objects.py` keeps pictures in an object
store. `monitor/` has metrics, traces and health. `group_setup.py` runs the setup of a job's task
once for all of its runs. `sql/` has the statements, `plugin.py` the table.
"""
