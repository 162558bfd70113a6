"""Runs as HUD's SDK has them."""
