"""A store that is kept for years: what it holds, what is damaged, and what may go.

`upkeep.py` has all of it, `values.py` what is told, `pictures.py` the folder of pictures.
"""
