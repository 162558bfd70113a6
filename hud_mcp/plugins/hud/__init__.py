"""HUD's SDK and its control channel.

`wire/` serves the channel and calls it. `bridge/` makes a HUD environment one of ours.
`endpoints/` gives sessions ways into their worlds. `live/` is the SDK's live environment,
`operating.py` and `operations.py` its operator's calls, `runs/` its jobs. `workspace/` is its
shell, and `place/` runs the template of a workspace in a process of its own.
"""
