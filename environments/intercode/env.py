"""Requests of InterCode-bash, with the places at which its file systems lie."""

from intercode_reward import declare

from hud_mcp import Environment, Shell

# The benchmark's home lies beside its file systems; a verifier's is there too.
HOME = {"HOME": "/tmp"}  # noqa: S108  # of the sandbox

env = Environment(
    "intercode", version="0.1.0", world=Shell(parts=("/testbed", "/system"), env=HOME)
)
declare(env)

# Its third file system is /workspace itself, where nothing else may lie.
workspace = Environment("intercode-workspace", version="0.1.0", world=Shell(env=HOME))
declare(workspace)
