"""Declaring environments: `Environment`, and who sees the rewards of its tasks.

`Workspace` and the types that its options take have HUD's names.
"""

from typing import TYPE_CHECKING, Any

from hud_mcp.environment.environment import REWARD_POLICIES, Environment
from hud_mcp.environment.workspace import (
    DEFAULT_SYSTEM_MOUNTS,
    Mount,
    MountKind,
    Peer,
    WorkspaceRoute,
)

if TYPE_CHECKING:
    from hud_mcp.worlds.shell.workspace import Workspace

__all__ = [
    "DEFAULT_SYSTEM_MOUNTS",
    "REWARD_POLICIES",
    "Environment",
    "Mount",
    "MountKind",
    "Peer",
    "Workspace",
    "WorkspaceRoute",
]


def __getattr__(name: str) -> Any:
    if name == "Workspace":  # it is a world's declaration, which lies above this module
        from hud_mcp.worlds.shell.workspace import Workspace  # noqa: PLC0415

        return Workspace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
