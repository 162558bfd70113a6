"""OpenEnv's wire over the same held sessions: episodes over a WebSocket or HTTP, and tasks.

The wire is that of OpenEnv 0.10: https://github.com/meta-pytorch/OpenEnv. Its names, `reset`,
`done`, `episode_id`, live here alone.
"""
