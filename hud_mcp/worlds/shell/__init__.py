"""A shell as a world: commands and files in a sandbox of the session's own."""

from hud_mcp.worlds.shell.results import CommandResult
from hud_mcp.worlds.shell.spec import Shell, view_picture
from hud_mcp.worlds.shell.verifier import Verifier, VerifierResult
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["CommandResult", "Shell", "ShellWorld", "Verifier", "VerifierResult", "view_picture"]
