"""The live environment of HUD's SDK: `operations.py` has what an operator does with a session."""
