"""The record as people look at it: text, pages, files."""
