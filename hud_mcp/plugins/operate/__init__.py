"""Stores and servers for an operator: several servers of one store, their state, and its upkeep."""
