"""Sandboxes: places for commands and files of one session, apart from everything else.

`bubblewrap` says what is seen inside, and `filter` says what is refused there. `inside` holds
the process that runs there, and `sandbox` the operations on a sandbox.
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
