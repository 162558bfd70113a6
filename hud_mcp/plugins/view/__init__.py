"""Records as people and programs follow them.

`outlines.py` reads jobs of very many runs in short, with the statements of `sql/`.
`subscriptions.py` tells clients when a session's record or picture has changed. `plugin.py` is the
table.
"""
