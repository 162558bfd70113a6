"""A store that is kept for years: what it holds, what is damaged, and what may go.

`facade.py` is what a `Store` can do of it, `values.py` what is told, `pictures.py` the folder of
pictures.
"""
