"""OpenEnv's wire over the same held sessions: episodes over a WebSocket or HTTP, and tasks.

Its names, `reset`, `done`, `episode_id`, live here alone. Read `episode` for what a reset and a
step mean, `tools` for how an environment's tools appear, `routes` for the addresses.
The wire is that of OpenEnv 0.10: https://github.com/meta-pytorch/OpenEnv.
"""
