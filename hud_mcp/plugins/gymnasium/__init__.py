"""Gymnasium: contexts of its environments, under CARL's names."""
