"""Public sets of tasks: a module each for rows, wording and judge, and a table in `sets.toml`."""
