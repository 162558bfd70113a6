"""Public sets of tasks: where each is published, how its files are fetched, and what rows become.

`published` lists them and is all that loads at first; the importer of one set is loaded with the
first set of its kind.
"""
