"""The live environment of HUD's SDK, and its workspaces.

`operations.py` has what an operator does with a session. `template_process/` runs the template of a
workspace in a process of its own.
"""
