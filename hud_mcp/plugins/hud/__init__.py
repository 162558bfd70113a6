"""HUD's SDK and its control channel.

`wire/` serves the channel and calls it, and `bridge/` makes a HUD environment one of ours.
`endpoints/` publishes the worlds of sessions over their own protocols. `live/` is the SDK's live
environment, and `controller/` runs the gyms of users. `operations` and `operating` have the
operator's calls, and `runs/` HUD's jobs. `workspace/` is HUD's shell, and `place/` runs a
workspace's template in a separate process.
"""
