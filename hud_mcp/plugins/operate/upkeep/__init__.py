"""The upkeep of a store over years: holdings, damage, pruning and copies.

`upkeep.py` has the operations, `values.py` their results, `pictures.py` the folder of pictures.
"""
