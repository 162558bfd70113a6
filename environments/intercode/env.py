"""Requests of InterCode-bash, with the places at which its file systems lie."""

from intercode_reward import declare

from hud_mcp import Environment, Shell

env = Environment("intercode", version="0.1.0", world=Shell(parts=("/testbed", "/system")))
declare(env)

# Its third file system is /workspace itself, where nothing else may lie.
workspace = Environment("intercode-workspace", version="0.1.0", world=Shell())
declare(workspace)
