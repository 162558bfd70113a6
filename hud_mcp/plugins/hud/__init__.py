"""HUD's SDK and its control channel.

`wire/` has the channel's two sides, `bridge/` turns a HUD environment into one of ours, and
`endpoints/` publishes sessions' worlds. `live/` is the SDK's live environment, and `workspace/` its
shell.
"""
