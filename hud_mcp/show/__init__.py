"""The record as people look at it, as text."""
