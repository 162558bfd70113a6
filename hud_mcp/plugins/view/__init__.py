"""Records as people and programs follow them.

`web/` has the pages, `export/` the files, `notebook.py` and `notebook_job.py` what a notebook
shows, and `human/` a person's page as an agent.
`outlines.py` reads jobs of very many runs in short, with the statements of `sql/`.
`subscriptions.py` tells clients when a session's record or picture has changed. `plugin.py` is the
table.
"""
