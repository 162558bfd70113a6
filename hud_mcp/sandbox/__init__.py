"""Sandboxes: places for commands and files of one session, apart from everything else.

Read `bubblewrap` for what is seen inside, `filter` for what is refused there, `inside` for
the process that runs there, and `sandbox` for what can be done with one.
"""

from hud_mcp.sandbox.files import Entry, FileInfo, Files
from hud_mcp.sandbox.folder import Packed, Skipped
from hud_mcp.sandbox.options import Isolation, SandboxLimits, SandboxOptions
from hud_mcp.sandbox.process import Finished, Process
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
    "Skipped",
    "Usage",
]
