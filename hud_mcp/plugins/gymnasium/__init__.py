"""Gymnasium: its environments as worlds, contexts under CARL's names, tasks as environments."""
