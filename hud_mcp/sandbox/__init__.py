"""Sandboxes: places for commands and files of one session, apart from everything else."""

from hud_mcp.sandbox.commands import Finished, Process
from hud_mcp.sandbox.files import Entry, FileInfo, Files
from hud_mcp.sandbox.folder import Packed
from hud_mcp.sandbox.options import Isolation, SandboxLimits, SandboxOptions
from hud_mcp.sandbox.sandbox import Sandbox, Usage

__all__ = [
    "Entry",
    "FileInfo",
    "Files",
    "Finished",
    "Isolation",
    "Packed",
    "Process",
    "Sandbox",
    "SandboxLimits",
    "SandboxOptions",
    "Usage",
]
