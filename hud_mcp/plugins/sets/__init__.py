"""Public sets of tasks: a module each for rows, wording and judge, and a table in `sets.toml`.

`imports.py` has what rows of all sets share; `files.py` fetches and keeps their files.
"""
