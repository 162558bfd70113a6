"""OpenEnv's wire over the same held sessions: episodes over a WebSocket or HTTP, and tasks.

Its names, `reset`, `done`, `episode_id`, live here alone. `episode` has resets and steps, `tools`
the listed tools, `rpc` its JSON-RPC, and `routes` the addresses.
The wire is that of OpenEnv 0.10: https://github.com/meta-pytorch/OpenEnv.
"""
