"""The upkeep of a store over years: holdings, damage, pruning and copies."""
