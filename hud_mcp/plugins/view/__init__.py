"""Records as people see them.

`outlines.py` reads jobs of very many runs in short, with the statements of `sql/`.
"""
